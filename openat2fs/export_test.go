package openat2fs

import "strings"

// GlobMatches walks one path through a glob as find does; ok is false where the
// glob is refused.
func GlobMatches(unsafeGlob, path string) (matches, ok bool) {
	g, err := newGlob(unsafeGlob)
	if err != nil {
		return false, false
	}
	at := g.start
	names := strings.Split(path, "/")
	for _, name := range names[:len(names)-1] {
		at = g.directory(&at, []byte(name))
	}
	return g.file(&at, []byte(names[len(names)-1])), true
}

// PageBytes is the bound of one page.
const PageBytes = pageBytes
