package openat2fs

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// walk is one page of Find. Directories are visited in the order of their keys
// (cursor.go), each opened from the root by its path: one descriptor is open at a
// time, and a name that was exchanged for a link meanwhile is refused like any
// other.
type walk struct {
	ctx         context.Context
	root        *Root
	glob        *glob
	limits      Limits
	temporaries bool
	from        string // keys before it belong to earlier pages
	deadline    time.Time

	dir      []byte     // the path of the directory at hand, with a slash, or empty
	listings []*listing // one for each depth, used again
	entries  int        // looked at, of those that can be left behind
	moved    bool       // a page that ends here ends behind where it began
	text     []byte     // the paths found, one behind the other
	ends     []int
	found    Found
}

// errPageEnds stops the walk where found.Next says.
var errPageEnds = errors.New("the page ends")

func (w *walk) all() (Found, error) {
	err := w.directory(0, w.glob.start)
	if err != nil && err != errPageEnds {
		return Found{}, err
	}
	text, begin := string(w.text), 0
	w.found.Paths = make([]Path, 0, len(w.ends))
	for _, end := range w.ends {
		w.found.Paths = append(w.found.Paths, Path{text[begin:end]})
		begin = end
	}
	return w.found, nil
}

// directory visits w.dir, whose places in the glob are at.
func (w *walk) directory(depth int, at places) error {
	l := w.listing(depth)
	low := w.low()
	for {
		err := l.read(w, &at, low)
		if err == errTime {
			return w.stop("time", low)
		}
		if err != nil {
			return w.unread(depth, err)
		}
		for i := range l.entries {
			if err := w.visit(l.key(i), depth, &at); err != nil {
				return err
			}
		}
		if !l.more {
			w.entries += l.unwanted
			return nil
		}
		low = l.behind()
	}
}

// low is the smallest key of w.dir that belongs to this page.
func (w *walk) low() string {
	if len(w.from) > len(w.dir) && w.from[:len(w.dir)] == string(w.dir) {
		return w.from[len(w.dir):]
	}
	return ""
}

// visit takes one key of the directory at hand.
func (w *walk) visit(key []byte, depth int, at *places) error {
	if w.moved && w.entries >= w.limits.FindEntries {
		return w.stop("entries", string(key))
	}
	if key[len(key)-1] == '/' {
		return w.enter(key, depth, at)
	}
	if len(w.ends) >= w.limits.FindPaths {
		return w.stop("paths", string(key))
	}
	w.entries++
	w.moved = true
	if len(w.dir)+len(key) > maxPathBytes {
		w.incomplete("length")
		return nil
	}
	w.text = append(append(w.text, w.dir...), key...)
	w.ends = append(w.ends, len(w.text))
	return nil
}

// enter visits a directory of the one at hand.
func (w *walk) enter(key []byte, depth int, at *places) error {
	w.entries++
	switch {
	case depth >= w.limits.FindDepth:
		w.incomplete("depth")
		return nil
	case len(w.dir)+len(key)+1 > maxPathBytes:
		w.incomplete("length")
		return nil
	}
	below := w.glob.directory(at, key[:len(key)-1])
	length := len(w.dir)
	w.dir = append(w.dir, key...)
	err := w.directory(depth+1, below)
	w.dir = w.dir[:length]
	w.moved = true
	return err
}

// stop ends the page before a key of the directory at hand; "" is its first. A
// page that has not moved would come again for ever: it has no next.
func (w *walk) stop(reason, key string) error {
	w.found.Truncated, w.found.Reason = true, reason
	if w.moved {
		w.found.Next = newCursor(string(w.dir) + key)
	}
	return errPageEnds
}

// incomplete: something is left out that no next page has.
func (w *walk) incomplete(reason string) {
	w.found.Truncated, w.found.Reason = true, reason
}

// unread: a directory could not be opened or read. Gone or exchanged for
// something else it is none of ours; else it is counted. Without the root there
// is no answer, and without descriptors or memory no use in going on.
func (w *walk) unread(depth int, err error) error {
	errno, ok := err.(unix.Errno)
	if !ok {
		return err // the context's
	}
	if depth == 0 || exhausted(errno) {
		return fail("list", Path{strings.TrimSuffix(string(w.dir), "/")}.String(), errno)
	}
	if errno != unix.ENOENT && errno != unix.ENOTDIR && errno != unix.ELOOP {
		w.found.Skipped++
	}
	return nil
}

func (w *walk) listing(depth int) *listing {
	for len(w.listings) <= depth {
		w.listings = append(w.listings, &listing{})
	}
	return w.listings[depth]
}
