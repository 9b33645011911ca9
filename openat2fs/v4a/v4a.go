// Package v4a reads patches in the V4A format and works out what they do.
//
// Parse turns the text of a patch into hunks, Plan turns hunks and the files as
// they are into changes: the bytes of every file before and after. Both are
// pure. Nothing here opens, reads or writes a file; the caller's Source does the
// reading, and the caller writes what was planned, or nothing.
//
// It promises that an edit is made where the patch says or not at all: a place
// that is not found or not certain is an error, and one error is the end of the
// whole plan. Files are bytes: what a patch does not name stays as it is,
// whatever its encoding and line endings. Time is near linear in patch and
// files, whatever they hold, and memory is bounded by the limits below. Every
// error is an *Error with a stable code and a line of the patch.
//
// It does not promise that the files still are what the plan saw: the versions
// in a Change are for the caller to compare. docs/patches.md describes the format.
package v4a

// The limits of one patch. A path counts from the workspace, in bytes; a hunk
// with a move has two.
const (
	MaxPatchBytes = 16 << 20
	MaxPatchLines = 1 << 20
	MaxFiles      = 1 << 17 // paths
	MaxChunks     = 1 << 18
	MaxPathBytes  = 4095 // PATH_MAX without its NUL, linux/limits.h
	MaxNameBytes  = 255  // NAME_MAX, of one component
	MaxPathDepth  = 128  // components
)

// The limits of what one plan reads and makes. A file over one of them is
// FILE_TOO_LARGE.
const (
	MaxFileBytes  = 128 << 20
	MaxFileLines  = 2 << 20
	MaxTotalBytes = 256 << 20 // of all files before, and of all files after
)

// Kind is what happens to a file.
type Kind string

const (
	Add    Kind = "add"
	Update Kind = "update"
	Delete Kind = "delete"
	Move   Kind = "move" // to another path, with or without edits
)

// Patch is a patch that was read: at least one hunk, no path twice, none below
// another. It refers to the bytes given to Parse, which must not change.
type Patch struct {
	Hunks []Hunk
}

// Hunk is what a patch says of one file.
type Hunk struct {
	Kind   Kind
	Path   string // clean and relative, without ".."
	MoveTo string // likewise; of a Move only
	Line   int    // of its header in the patch, from 1

	lines  [][]byte // of an Add, without the sign
	chunks []chunk  // of an Update or Move
}

// chunk is one edit: where to look, and lines as they stand in the patch, each
// with its sign or, for an empty context line, without anything.
type chunk struct {
	line      int // of its first anchor or line in the patch
	anchors   [][]byte
	lines     [][]byte
	endOfFile bool
}

func removed(line []byte) bool { return len(line) > 0 && line[0] == '-' }
func added(line []byte) bool   { return len(line) > 0 && line[0] == '+' }

// content is a patch line without its sign.
func content(line []byte) []byte {
	if len(line) == 0 {
		return line
	}
	return line[1:]
}

// old is what a chunk wants to find: its context and removed lines.
func (c *chunk) old() [][]byte {
	var lines [][]byte
	for _, line := range c.lines {
		if !added(line) {
			lines = append(lines, content(line))
		}
	}
	return lines
}
