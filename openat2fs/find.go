package openat2fs

import (
	"context"
	"time"
)

// Query is what Find looks for.
type Query struct {
	Glob   string // doublestar's language; "" is everything
	Cursor string // Next of the page before; "" begins
	Limit  int    // paths of this page; 0, or more than the root's limit, is that limit
	// Temporaries finds the files of CreateTemp, which are otherwise left out.
	Temporaries bool
}

// Found is one page.
type Found struct {
	Paths     []Path // of everything but directories, sorted by their bytes
	Truncated bool   // a limit was met: there is, or may be, more
	Reason    string // the limit: "paths", "entries", "time", "depth" or "length"
	// Next continues behind this page, and is "" at the end. A page that is
	// truncated and has none cannot be continued: what it lacks lies too deep, or
	// one directory alone takes longer than there is time.
	Next string
	// Skipped counts the directories that were not entered because they are
	// mounts, or may not be read.
	Skipped int
}

// Find walks the directories that can hold a match of the glob, without following
// a link or entering a mount. What is found is named, not opened: it may be a link
// or a special file. A page sees each directory once; what is made, removed or
// renamed meanwhile is in it or not, and a later page goes on behind the last path
// without looking at the directories before. Errors: INVALID_ARGUMENT and
// PATH_ESCAPE for the query, FILE_OPERATION_FAILED for the machine.
func (r *Root) Find(ctx context.Context, q Query) (Found, error) {
	glob, err := newGlob(q.Glob)
	if err != nil {
		return Found{}, err
	}
	from, err := parseCursor(q.Cursor)
	if err != nil {
		return Found{}, err
	}
	if q.Limit < 0 {
		return Found{}, &Error{Code: InvalidArgument, Op: "find", Path: q.Glob, Reason: "the limit is negative"}
	}
	if err := r.enter(ctx); err != nil {
		return Found{}, err
	}
	defer r.leave()
	limits := r.limits
	if q.Limit > 0 {
		limits.FindPaths = min(limits.FindPaths, q.Limit)
	}
	w := &walk{ctx: ctx, root: r, glob: glob, from: from, limits: limits,
		temporaries: q.Temporaries, deadline: time.Now().Add(limits.FindTime)}
	return w.all()
}
