package runner

import (
	"context"
	"errors"
	"slices"

	"codespace/openat2fs"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// start watches the root and all below it.
func (w *watcher) start(ctx context.Context) error {
	handle, err := w.root.OpenDir(ctx, openat2fs.Path{})
	if err != nil {
		return err
	}
	defer handle.Close()
	w.top = &directory{is: w.root.is}
	if err := w.add(handle, w.top); err != nil {
		return err
	}
	_, err = w.scan(ctx, w.top)
	return err
}

// add watches the directory of a handle.
func (w *watcher) add(handle *openat2fs.Dir, d *directory) error {
	d.name, d.below = w.name(handle.Fd()), map[openat2fs.Name]*directory{}
	if err := w.notify.Add(d.name); err != nil {
		return err
	}
	w.byName[d.name], w.byIdentity[d.is] = d, d
	return nil
}

func (w *watcher) holds(d *directory) bool { return w.byName[d.name] == d }

// drop forgets a directory and all below it.
func (w *watcher) drop(d *directory) {
	delete(d.parent.below, d.here)
	for todo := []*directory{d}; len(todo) > 0; {
		d, todo = todo[len(todo)-1], todo[:len(todo)-1]
		for _, below := range d.below {
			todo = append(todo, below)
		}
		delete(w.byName, d.name)
		if w.byIdentity[d.is] == d {
			delete(w.byIdentity, d.is)
		}
		w.notify.Remove(d.name) // fails where the kernel or fsnotify was faster
	}
}

// appeared watches what stands at a place now, if it is a directory.
func (w *watcher) appeared(ctx context.Context, at entry) error {
	if !w.holds(at.in) {
		return nil
	}
	in, err := w.open(ctx, at.in)
	if in == nil {
		return err
	}
	defer in.Close()
	d, err := w.enter(in, at)
	if d == nil {
		return err
	}
	entries, err := w.scan(ctx, d)
	if entries > 0 { // which were there before the watch was
		w.missed = true
	}
	return err
}

// scan watches everything below a directory that is watched.
func (w *watcher) scan(ctx context.Context, from *directory) (entries int, err error) {
	for todo := []*directory{from}; len(todo) > 0; {
		d := todo[len(todo)-1]
		below, n, err := w.list(ctx, d)
		if err != nil {
			return entries, err
		}
		entries += n
		todo = append(todo[:len(todo)-1], below...)
	}
	return entries, nil
}

// list watches the directories in one that is watched.
func (w *watcher) list(ctx context.Context, d *directory) (below []*directory, entries int, err error) {
	if !w.holds(d) {
		return nil, 0, nil
	}
	in, err := w.open(ctx, d)
	if in == nil {
		return nil, 0, err
	}
	defer in.Close()
	names, entries, err := in.Directories(ctx, w.limits.directories-len(w.byName)+1)
	if err != nil {
		return nil, 0, w.unwatched(d, err)
	}
	for _, name := range names {
		found, err := w.enter(in, entry{d, name})
		if err != nil {
			return below, entries, err
		}
		if found != nil {
			below = append(below, found)
		}
	}
	return below, entries, nil
}

// open opens a directory that is watched. It is nil where another stands at its path:
// the event that says so is on its way.
func (w *watcher) open(ctx context.Context, d *directory) (*openat2fs.Dir, error) {
	in, err := w.root.OpenDir(ctx, d.path)
	if err != nil {
		return nil, w.unwatched(d, err)
	}
	is, err := in.Identity()
	if err != nil || is != d.is {
		in.Close()
		return nil, err
	}
	return in, nil
}

// enter watches what stands at a place, whose directory is open; nil if that is no
// directory, is left out, or was watched there before.
func (w *watcher) enter(in *openat2fs.Dir, at entry) (*directory, error) {
	handle, err := in.Open(at.name)
	if err != nil {
		return nil, w.unwatched(at.in, err)
	}
	defer handle.Close()
	is, err := handle.Identity()
	if err != nil {
		return nil, err
	}
	old := w.byIdentity[is]
	if old == w.top || old != nil && old == at.in.below[at.name] {
		return nil, nil
	}
	for _, d := range []*directory{old, at.in.below[at.name]} { // it was moved here, or took that one's place
		if d != nil && w.holds(d) {
			w.missed = true
			w.drop(d)
		}
	}
	if !w.holds(at.in) {
		return nil, nil
	}
	if len(w.byName) >= w.limits.directories {
		w.leaveOut()
		return nil, nil
	}
	d := &directory{is: is, path: handle.Path(), parent: at.in, here: at.name}
	if err := w.add(handle, d); err != nil {
		return nil, w.unwatched(at.in, err)
	}
	at.in.below[at.name] = d
	return d, nil
}

// unwatched decides what an error means that a directory in d had. What is none, or
// none of ours, needs no watch; without descriptors, memory or watches there is no
// use in going on, and other programs of the same user need some too.
func (w *watcher) unwatched(d *directory, err error) error {
	is := func(these ...error) bool {
		return slices.ContainsFunc(these, func(one error) bool { return errors.Is(err, one) })
	}
	switch {
	case is(unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV):
		return nil
	case is(unix.EACCES, unix.EPERM):
		d.refused = true
		return nil
	case is(unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOSPC, unix.EBADF, fsnotify.ErrClosed, context.Canceled):
		return err
	}
	w.leaveOut()
	return nil
}

// leaveOut: a directory is not watched that should be.
func (w *watcher) leaveOut() {
	w.missed = true
	if !w.partial && !w.lost {
		w.rest.Reset(w.limits.partial)
	}
	w.partial = true
}
