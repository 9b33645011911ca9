package openat2fs

import (
	"context"
	"strings"
)

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

// MakeDirs opens a directory and makes what is missing of it and above it. made are the
// directories that this call made, outermost first, also when it fails.
func (r *Root) MakeDirs(ctx context.Context, p Path, mode uint32) (d *Dir, made []Path, err error) {
	d, err = r.OpenDir(ctx, Path{})
	if err != nil || p.IsRoot() {
		return d, nil, err
	}
	for rest := p.text; rest != ""; {
		var name Name
		name.text, rest, _ = strings.Cut(rest, "/")
		below, isNew, err := d.OpenOrMake(name, mode)
		d.Close()
		if isNew {
			made = append(made, Path{p.text[:len(p.text)-len(rest)-min(len(rest), 1)]})
		}
		if err != nil {
			return nil, made, err
		}
		d = below
	}
	return d, made, nil
}
