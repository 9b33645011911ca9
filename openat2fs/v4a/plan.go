package v4a

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Source is the files of a workspace as they are. Paths are clean, relative and
// without "..". A path that holds nothing is an error that is fs.ErrNotExist; any
// other error of a Source ends the plan and is returned as it is.
type Source interface {
	// Stat is the type and permissions of what is at path, without following it
	// if it is a link.
	Stat(path string) (fs.FileMode, error)
	// Read is the content of the regular file at path. Of one that has more than
	// limit bytes, limit+1 are enough.
	Read(path string, limit int) ([]byte, error)
}

// Change is what becomes of one file. A version is "sha256:" and 64 hex digits
// over the whole content, "" for no file. Before and After of a Move without chunks
// are the same bytes.
type Change struct {
	Kind          Kind
	Path          string
	From          string      // the path before a Move
	Mode          fs.FileMode // permission bits of the file as it was, without set-id and sticky; 0 for an Add
	Before, After []byte
	BeforeVersion string
	AfterVersion  string
}

// Plan works out every change of a patch, in its order, or none. An error is an
// *Error or the source's own. It asks the source for paths of the patch and for
// the directories above them, and reads each file once.
func Plan(patch Patch, source Source) ([]Change, error) {
	p := planner{source: source, above: map[string]fs.FileMode{}}
	return p.plan(patch)
}

type planner struct {
	source  Source
	steps   steps
	above   map[string]fs.FileMode // directories; absent stands for nothing there
	read    int                    // bytes of all files before
	written int                    // and after
}

// absent is a mode that no file has: two types at once.
const absent = fs.ModeDir | fs.ModeSymlink

func (p *planner) plan(patch Patch) ([]Change, error) {
	changes := make([]Change, 0, len(patch.Hunks))
	for i := range patch.Hunks {
		change, err := p.change(&patch.Hunks[i])
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}

func (p *planner) change(h *Hunk) (Change, error) {
	c := Change{Kind: h.Kind, Path: h.Path}
	if h.Kind == Add {
		if err := p.free(target{h.Path, h.Line, AddFileExists}); err != nil {
			return Change{}, err
		}
		c.After = joined(h.lines)
		return p.finished(h, c)
	}
	if err := p.load(h, &c); err != nil {
		return Change{}, err
	}
	if h.Kind == Delete {
		return c, nil
	}
	if h.Kind == Move {
		if err := p.free(target{h.MoveTo, h.Line + 1, MoveDestinationExists}); err != nil {
			return Change{}, err
		}
		c.Path, c.From = h.MoveTo, h.Path
	}
	c.After = c.Before
	if len(h.chunks) > 0 {
		after, err := p.edited(h, c.Before)
		if err != nil {
			return Change{}, err
		}
		c.After = after
	}
	return p.finished(h, c)
}

// joined is the content of a new file.
func joined(lines [][]byte) []byte {
	size := len(lines)
	for _, line := range lines {
		size += len(line)
	}
	text := make([]byte, 0, size)
	for _, line := range lines {
		text = append(append(text, line...), '\n')
	}
	return text
}

// load reads the file of a hunk into a change.
func (p *planner) load(h *Hunk, c *Change) error {
	mode, err := p.stat(h.Path, h.Line)
	switch {
	case err != nil:
		return err
	case mode == absent:
		return at(h.Path, h.Line, FileNotFound).says("does not exist", "a file that is there", "look at the path, or add the file")
	case mode.IsDir():
		return at(h.Path, h.Line, SpecialFileRejected).says("is a directory", "a regular file", "name the files in it one by one")
	}
	limit := min(MaxFileBytes, MaxTotalBytes-p.read)
	c.Before, err = p.source.Read(h.Path, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return at(h.Path, h.Line, FileNotFound).says("does not exist any more", "a file that is there", "try again")
	}
	if err != nil {
		return err
	}
	if len(c.Before) > limit {
		return tooLarge(h, fmt.Sprintf("has more than the %d bytes that this patch may still read", limit))
	}
	p.read += len(c.Before)
	c.Mode = mode.Perm()
	c.BeforeVersion = version(c.Before)
	return nil
}

// edited is the content of a file after the chunks of a hunk.
func (p *planner) edited(h *Hunk, before []byte) ([]byte, error) {
	f, ok := lines(before)
	if !ok {
		return nil, tooLarge(h, fmt.Sprintf("has more than %d lines", MaxFileLines))
	}
	edits, fault := locate(&p.steps, f, h)
	if fault != nil {
		return nil, fault
	}
	p.steps += steps(f.count())
	return f.rewrite(edits), nil
}

// finished checks what a change makes and gives it its version.
func (p *planner) finished(h *Hunk, c Change) (Change, error) {
	p.written += len(c.After)
	if len(c.After) > MaxFileBytes || p.written > MaxTotalBytes {
		return Change{}, tooLarge(h, fmt.Sprintf("would have %d bytes and all files of the patch %d", len(c.After), p.written))
	}
	c.AfterVersion = version(c.After)
	return c, nil
}

func version(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// target is a path that must be free, and the code if it is not.
type target struct {
	path  string
	line  int
	taken Code
}

func (p *planner) free(t target) error {
	mode, err := p.stat(t.path, t.line)
	if err != nil || mode == absent {
		return err
	}
	next := "update the file, or delete it in a patch before"
	if t.taken == MoveDestinationExists {
		next = "move to another path, or delete the file there in a patch before"
	}
	return at(t.path, t.line, t.taken).says("exists already", "a path that is free", next)
}

// stat is what is at a path: a regular file, a directory, or absent. Above it are
// directories only.
func (p *planner) stat(path string, line int) (fs.FileMode, error) {
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		mode, err := p.directory(path[:i], line)
		if err != nil || mode == absent {
			return mode, err
		}
	}
	return p.look(path, line)
}

// directory is what is at a path above a file; each is asked for once.
func (p *planner) directory(path string, line int) (fs.FileMode, error) {
	if mode, ok := p.above[path]; ok {
		return mode, nil
	}
	mode, err := p.look(path, line)
	if err != nil {
		return 0, err
	}
	if mode.IsRegular() {
		return 0, at(path, line, PathNotDirectory).says("is a file", "a directory", "look at the path")
	}
	p.above[strings.Clone(path)] = mode
	return mode, nil
}

func (p *planner) look(path string, line int) (fs.FileMode, error) {
	mode, err := p.source.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent, nil
	case err != nil:
		return 0, err
	case mode.IsRegular() || mode.IsDir():
		return mode, nil
	case mode.Type() == fs.ModeSymlink:
		return 0, at(path, line, SymlinkRejected).says("is a symbolic link", "a path without links", "name what it points to, if that is in the workspace")
	}
	return 0, at(path, line, SpecialFileRejected).says("is neither a file nor a directory", "a regular file", "leave it alone")
}

// at begins an error about a path.
func at(path string, line int, code Code) *Error {
	return &Error{Code: code, Path: path, Line: line}
}

func (e *Error) says(what, expected, next string) *Error {
	e.What, e.Expected, e.Next = quote(e.Path)+" "+what, expected, next
	return e
}

func tooLarge(h *Hunk, what string) *Error {
	return at(h.Path, h.Line, FileTooLarge).says(what, "a smaller file", "change it by a command instead")
}
