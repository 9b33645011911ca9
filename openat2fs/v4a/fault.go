package v4a

import (
	"fmt"
	"strconv"
	"strings"
)

// Code is a stable error code of the contract.
type Code string

const (
	InvalidPatch          Code = "INVALID_PATCH"
	Ambiguous             Code = "PATCH_AMBIGUOUS"
	PathEscape            Code = "PATH_ESCAPE"
	AddFileExists         Code = "ADD_FILE_EXISTS"
	MoveDestinationExists Code = "MOVE_DESTINATION_EXISTS"
	FileNotFound          Code = "FILE_NOT_FOUND"
	FileTooLarge          Code = "FILE_TOO_LARGE"
	PathNotDirectory      Code = "PATH_NOT_DIRECTORY"
	SymlinkRejected       Code = "SYMLINK_REJECTED"
	SpecialFileRejected   Code = "SPECIAL_FILE_REJECTED"
)

// Error is why a patch is refused. Line is in the patch as it was given to Parse,
// from 1. What was found, what was expected and what to do next are texts for a
// person or a model; the fields after them are the same facts for a program.
type Error struct {
	Code     Code
	Line     int
	Path     string // of the file concerned, "" for none
	What     string
	Expected string
	Next     string

	Chunk   int      // number of the chunk in its hunk, from 1; 0 for none
	Matches []int    // lines of the file, from 1, where an ambiguous chunk fits: the first 20
	Total   int      // how many places there are
	Sought  []string // the first lines that were not found, shortened and quoted
	Nearest int      // line of the file, from 1, where the nearest candidate begins; 0 for none
	Differs int      // the first line of the file there that is another; 0 for none
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s; %s", e.Code, e.Reason(), e.Next) }

// Reason is the error without its code and without what to do next.
func (e *Error) Reason() string {
	text := fmt.Sprintf("line %d of the patch: %s", e.Line, e.What)
	if e.Expected != "" {
		text += "; expected " + e.Expected
	}
	return text
}

// invalid is a fault in the text of a patch.
func invalid(line int, what, expected, next string) *Error {
	return &Error{Code: InvalidPatch, Line: line, What: what, Expected: expected, Next: next}
}

// shownBytes bounds how much of one line an error repeats, shownLines and
// shownMatches how many of them.
const (
	shownBytes   = 120
	shownLines   = 8
	shownMatches = 20
)

// quote shows text so that it can neither act on a terminal nor fill a reply.
func quote[T string | []byte](text T) string {
	if len(text) > shownBytes {
		return strconv.Quote(string(text[:shownBytes])) + "..."
	}
	return strconv.Quote(string(text))
}

// shown is the first of some lines, each quoted.
func shown(lines [][]byte) []string {
	var quoted []string
	for _, line := range lines[:min(len(lines), shownLines)] {
		quoted = append(quoted, quote(line))
	}
	return quoted
}

// listed joins what is shown of total things.
func listed(shown []string, total int) string {
	text := strings.Join(shown, ", ")
	if more := total - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
