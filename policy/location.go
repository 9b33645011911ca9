package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// location is a place in the file system: its canonical path, and the identity
// (device and inode) of every directory from it up to the root that exists, so
// that a second name for the same directory is not taken for another one.
type location struct {
	path  string
	chain []fs.FileInfo // itself first; without itself where it does not exist
	found bool          // it exists
}

// locate finds an existing path.
func locate(unsafePath string) (location, *flaw) {
	if strings.Contains(unsafePath, "\x00") || !filepath.IsAbs(unsafePath) {
		return location{}, notAbsolute()
	}
	canonical, err := filepath.EvalSymlinks(unsafePath)
	if err != nil {
		return location{}, unreachable(unsafePath, err)
	}
	if !utf8.ValidString(canonical) {
		return location{}, &flaw{allowed: "a path in UTF-8", next: "rename the directory"}
	}
	return ascend(canonical)
}

// prospect finds a path whose last components may not exist yet.
func prospect(unsafePath string) (location, *flaw) {
	if strings.Contains(unsafePath, "\x00") || !filepath.IsAbs(unsafePath) {
		return location{}, notAbsolute()
	}
	clean := filepath.Clean(unsafePath)
	var missing []string
	for {
		at, f := locate(clean)
		_, err := os.Lstat(clean)
		if f == nil {
			return at.beneath(missing), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || clean == "/" {
			return location{}, f
		}
		missing = append([]string{filepath.Base(clean)}, missing...)
		clean = filepath.Dir(clean)
	}
}

// beneath is the location of names under l that do not exist.
func (l location) beneath(names []string) location {
	if len(names) == 0 {
		return l
	}
	below := filepath.Join(append([]string{l.path}, names...)...)
	return location{path: below, chain: l.chain}
}

// ascend reads the identities from a canonical path up to the root.
func ascend(canonical string) (location, *flaw) {
	l := location{path: canonical, found: true}
	for dir := canonical; ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return location{}, unreachable(dir, err)
		}
		l.chain = append(l.chain, info)
		if dir == "/" {
			return l, nil
		}
	}
}

// within reports whether l is outer or lies beneath it, by path or by identity.
func (l location) within(outer location) bool {
	if l.path == outer.path || strings.HasPrefix(l.path, strings.TrimSuffix(outer.path, "/")+"/") {
		return true
	}
	for _, info := range l.chain {
		if outer.found && os.SameFile(info, outer.self()) {
			return true
		}
	}
	return false
}

// self is what stands at an existing location.
func (l location) self() fs.FileInfo { return l.chain[0] }

func notAbsolute() *flaw {
	return &flaw{allowed: "an absolute path without NUL", next: "write the path from / on"}
}

func unreachable(unsafePath string, err error) *flaw {
	var broken *fs.PathError
	if errors.As(err, &broken) {
		err = broken.Err
	}
	return &flaw{
		found:   fmt.Sprintf("%s (%v)", quote(unsafePath), err),
		allowed: "a path that exists and can be reached",
		next:    "create it or correct the path",
	}
}
