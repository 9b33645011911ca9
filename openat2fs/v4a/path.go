package v4a

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// path checks a path as written and makes it clean: "." and repeated slashes go.
func (p *parser) path(written string) (string, *Error) {
	if p.paths++; p.paths > MaxFiles {
		return "", tooMuch(p.line, "the patch names too many files", MaxFiles)
	}
	if len(written) > MaxPathBytes {
		return "", tooLong(p.line, fmt.Sprintf("the path has %d bytes", len(written)), MaxPathBytes)
	}
	var names []string
	for name := range strings.SplitSeq(written, "/") {
		switch {
		case name == "..":
			return "", escape(p.line, written, `it has ".." in it`)
		case len(name) > MaxNameBytes:
			return "", tooLong(p.line, fmt.Sprintf("a name in the path has %d bytes", len(name)), MaxNameBytes)
		case name != "" && name != ".":
			names = append(names, name)
		}
	}
	switch {
	case strings.HasPrefix(written, "/"):
		return "", escape(p.line, written, "it is absolute")
	case strings.ContainsRune(written, 0):
		return "", escape(p.line, written, "it has a NUL in it")
	case len(names) == 0:
		return "", escape(p.line, written, "it names no file")
	case len(names) > MaxPathDepth:
		return "", tooLong(p.line, fmt.Sprintf("the path has %d names", len(names)), MaxPathDepth)
	case strings.HasSuffix(written, "/") || strings.HasSuffix(written, "/."):
		return "", invalid(p.line, "the path "+quote(written)+" is a directory's", "the path of a file", "name a file")
	}
	return strings.Join(names, "/"), nil
}

func escape(line int, written, why string) *Error {
	return &Error{Code: PathEscape, Line: line, Path: written[:min(len(written), shownBytes)], What: "cannot use path " + quote(written) + ": " + why,
		Expected: "a path from the root of the workspace down", Next: "write it as seen from the workspace"}
}

func tooLong(line int, what string, limit int) *Error {
	return invalid(line, what, fmt.Sprintf("at most %d", limit), "use a shorter path")
}

// touched is a path and the hunk that touches it.
type touched struct {
	path string
	line int
}

// apart wants every path once and no file below another: what a patch does to
// one file may not depend on what it does to the next.
func apart(hunks []Hunk) error {
	var paths []touched
	for _, h := range hunks {
		paths = append(paths, touched{h.Path, h.Line})
		if h.Kind == Move {
			paths = append(paths, touched{h.MoveTo, h.Line + 1})
		}
	}
	slices.SortFunc(paths, func(a, b touched) int { return cmp.Or(downward(a.path, b.path), cmp.Compare(a.line, b.line)) })
	for i, second := range paths[min(1, len(paths)):] {
		first := paths[i]
		if !strings.HasPrefix(second.path, first.path) {
			continue
		}
		if below := second.path[len(first.path):]; below == "" || below[0] == '/' {
			return collision(first, second)
		}
	}
	return nil
}

// downward orders paths so that whatever is below one follows it directly: a
// slash sorts before every other byte.
func downward(a, b string) int {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == b[i]:
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		default:
			return cmp.Compare(a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b))
}

func collision(first, second touched) *Error {
	e := invalid(max(first.line, second.line), "", "", "")
	e.Path = second.path
	if first.path == second.path {
		e.What = fmt.Sprintf("the file %s is touched in lines %d and %d", quote(first.path), first.line, second.line)
		e.Expected, e.Next = "every file once", "put all its chunks into one hunk, or send a second patch"
		return e
	}
	e.What = fmt.Sprintf("the file %s (line %d) would be below the file %s (line %d)", quote(second.path), second.line, quote(first.path), first.line)
	e.Expected, e.Next = "no file below another", "rename one, or send a second patch"
	return e
}
