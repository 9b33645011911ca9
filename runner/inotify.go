package runner

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"codespace/openat2fs"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// watcher watches the directories of one workspace with one inotify instance.
//
// It watches no directory outside, follows no link and enters no mount, and no event
// has another path than one beneath the root. fsnotify would do neither: it takes a
// path, follows every link in it, and calls the directory by that path ever after.
// So it is given a path on which the workspace has no say, /proc/self/fd/N, where N
// is a handle that openat2fs opened beneath the root: its magic link leads to that
// very directory (proc_pid_fd(5)). The watch is of the inode, and the handle is
// closed again. N is then the next directory's, and what fsnotify knows by the same
// path it takes for the same directory. So each gets a way there of its own: two
// handles on /proc/self/fd itself are the digits of a number that is used once, as
// in /proc/self/fd/7/8/8/N. The kernel follows 40 links on a way (path_resolution(7)),
// which is enough for 2^38 directories.
//
// A directory is opened in its parent's handle, after the parent is watched, so that
// whatever moves it away is told, and told before anything that happens in it there:
// the events of one instance have an order. What was watched under the old path is
// forgotten with that event, and what comes later under that name is dropped.
//
// It watches at most limits.directories. What lies in more has no event of its own:
// instead there is ResyncRequired, when a directory is left out and once every
// limits.partial. Of what the owner may not read, and of other mounts, nothing is
// told.
type watcher struct {
	root   *root
	feed   *feed
	limits watchLimits
	notify *fsnotify.Watcher
	digits []int // two handles on /proc/self/fd
	names  uint64

	overflowed chan struct{}
	failed     chan error
	pump       sync.WaitGroup

	top        *directory
	byName     map[string]*directory // fsnotify's
	byIdentity map[openat2fs.Identity]*directory

	missed  bool // something may have changed of which there is no event
	partial bool // not all directories are watched
	lost    bool // after an overflow: only the root is watched
	rest    *time.Timer
	look    *time.Timer
}

// directory is one that is watched.
type directory struct {
	name    string // fsnotify's
	is      openat2fs.Identity
	path    openat2fs.Path
	parent  *directory // nil for the root
	here    openat2fs.Name
	below   map[openat2fs.Name]*directory
	refused bool // it holds directories that the owner may not read
}

const (
	handles     = "/proc/self/fd"
	watchBuffer = 1024 // events between fsnotify and the watcher
)

// errRootGone is the end of a watcher whose root was renamed or removed.
var errRootGone = errors.New("the workspace's root is gone")

// watchRoot watches a workspace with its owner's file identity, until the context
// ends, which is no error, or the watch does. It holds three descriptors, and two more
// while it looks for directories.
func watchRoot(ctx context.Context, at *root, f *feed, limits watchLimits) error {
	w, err := newWatcher(at, f, limits)
	if err != nil {
		return err
	}
	defer w.close()
	return w.watch(ctx)
}

func newWatcher(at *root, f *feed, limits watchLimits) (*watcher, error) {
	w := &watcher{root: at, feed: f, limits: limits, byName: map[string]*directory{}, byIdentity: map[openat2fs.Identity]*directory{},
		overflowed: make(chan struct{}, 1), failed: make(chan error, 1), rest: time.NewTimer(time.Hour), look: time.NewTimer(time.Hour)}
	w.rest.Stop()
	w.look.Stop()
	for range 2 {
		fd, err := unix.Open(handles, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			w.close()
			return nil, fmt.Errorf("cannot open %s: %w", handles, err)
		}
		w.digits = append(w.digits, fd)
	}
	var err error
	if w.notify, err = fsnotify.NewBufferedWatcher(watchBuffer); err != nil {
		w.close()
		return nil, fmt.Errorf("cannot start watching: %w", err)
	}
	w.pump.Go(w.receiveErrors)
	return w, nil
}

func (w *watcher) watch(ctx context.Context) error {
	_, err := asOwner(w.root.threads, func() (struct{}, error) { return struct{}{}, w.run(ctx) })
	return err
}

func (w *watcher) close() {
	if w.notify != nil {
		w.notify.Close()
		w.pump.Wait()
	}
	for _, fd := range w.digits {
		unix.Close(fd)
	}
	w.digits = nil
	w.rest.Stop()
	w.look.Stop()
}

func (w *watcher) run(ctx context.Context) error {
	if err := w.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("cannot start watching: %w", err)
	}
	w.missed = false
	w.feed.begin()
	for {
		err := w.step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errRootGone):
			return err
		case err != nil || w.missed:
			w.missed = false
			w.feed.tell(resync, ".")
		}
		if err != nil {
			return err
		}
	}
}

// receiveErrors takes what fsnotify reports. It has a goroutine of its own because
// fsnotify may hold its lock while it reports, which Add and Remove wait for.
func (w *watcher) receiveErrors() {
	for err := range w.notify.Errors {
		switch {
		case errors.Is(err, fsnotify.ErrEventOverflow):
			select {
			case w.overflowed <- struct{}{}:
			default:
			}
		case errors.Is(err, unix.EINVAL): // a directory was moved, and removed before its watch was
		default:
			select {
			case w.failed <- err:
			default:
			}
		}
	}
}

// step waits for one thing to happen. An error is the end of the watch.
func (w *watcher) step(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case e, ok := <-w.notify.Events:
		if !ok {
			return errors.New("cannot receive events: there are no more")
		}
		return w.take(ctx, e)
	case err := <-w.failed:
		return fmt.Errorf("cannot receive events: %w", err)
	case <-w.overflowed:
		w.overflow()
		return nil
	case <-w.rest.C:
		return w.rested(ctx)
	case <-w.look.C:
		return w.looked(ctx)
	}
}

// overflow: a directory may have been moved away, or made, without an event. What
// is below the root is watched anew, after a while, so that a storm does not have
// that done over and over.
func (w *watcher) overflow() {
	for _, d := range w.top.below {
		w.drop(d)
	}
	w.missed, w.lost = true, true
	w.rest.Reset(w.limits.rest)
}

func (w *watcher) rested(ctx context.Context) error {
	w.missed = true
	if !w.lost {
		w.rest.Reset(w.limits.partial)
		return nil
	}
	w.lost, w.partial = false, false
	_, err := w.scan(ctx, w.top)
	return err
}

// looked finds a root that was removed. The kernel tells that only once nobody holds
// the directory any more, and the runner does (fs/dcache.c, d_delete).
func (w *watcher) looked(ctx context.Context) error {
	st, err := w.root.Stat(ctx, openat2fs.Path{})
	if err != nil {
		return err
	}
	if st.Links == 0 {
		w.feed.tell(removed, ".")
		return errRootGone
	}
	return nil
}

// take tells one event, and first does to the watches what it calls for.
func (w *watcher) take(ctx context.Context, e fsnotify.Event) error {
	if d := w.byName[e.Name]; d != nil {
		return w.itself(ctx, d, e.Op)
	}
	at := strings.LastIndexByte(e.Name, '/')
	d := w.byName[e.Name[:max(at, 0)]]
	if d == nil {
		w.missed = w.missed || !strings.HasPrefix(e.Name, handles)
		return nil // of a directory that is forgotten
	}
	if w.lost {
		return nil
	}
	name, err := openat2fs.ParseName(e.Name[at+1:])
	if err != nil {
		w.missed = true
		return nil
	}
	return w.inside(ctx, entry{d, name}, e.Op)
}

// entry is a name in a directory.
type entry struct {
	in   *directory
	name openat2fs.Name
}

func (w *watcher) inside(ctx context.Context, at entry, op fsnotify.Op) error {
	path, err := at.in.path.Join(at.name)
	if err != nil {
		w.leaveOut()
		return nil
	}
	old := at.in.below[at.name]
	switch {
	case op.Has(fsnotify.Create):
		err = w.appeared(ctx, at)
		w.feed.tell(created, path.String())
	case op.Has(fsnotify.Remove):
		if old != nil {
			w.missed = w.missed || len(old.below) > 0
			w.drop(old)
		}
		if at.in == w.top {
			w.look.Reset(w.limits.look)
		}
		w.feed.tell(removed, path.String())
	case op.Has(fsnotify.Rename):
		if old != nil {
			w.missed = true
			w.drop(old)
		}
		err = w.appeared(ctx, at) // of two that changed places, the other
		w.feed.tell(renamed, path.String())
	case op.Has(fsnotify.Write) || op.Has(fsnotify.Chmod):
		if op.Has(fsnotify.Chmod) && at.in.refused {
			err = w.appeared(ctx, at)
		}
		w.feed.tell(modified, path.String())
	default:
		w.missed = true
	}
	return err
}

// itself takes an event that a directory has of itself. Of the root nobody else
// tells; all others have a parent, which does.
func (w *watcher) itself(ctx context.Context, d *directory, op fsnotify.Op) error {
	switch {
	case d == w.top && op.Has(fsnotify.Rename):
		w.feed.tell(renamed, ".")
		return errRootGone
	case d == w.top && op.Has(fsnotify.Remove):
		w.feed.tell(removed, ".")
		return errRootGone
	case op.Has(fsnotify.Chmod):
		return w.changedMode(ctx, d)
	case op.Has(fsnotify.Rename): // fsnotify watches it no longer
		w.missed = true
		w.drop(d)
		return w.appeared(ctx, entry{d.parent, d.here})
	case op.Has(fsnotify.Remove):
		w.drop(d)
	}
	return nil
}

// changedMode: what could not be entered in a directory may be open now.
func (w *watcher) changedMode(ctx context.Context, d *directory) error {
	if d == w.top {
		w.feed.tell(modified, ".")
	}
	if !d.refused || w.lost {
		return nil
	}
	d.refused, w.missed = false, true
	_, err := w.scan(ctx, d)
	return err
}

// name is a path for a handle that no other had before.
func (w *watcher) name(fd int) string {
	b := []byte(handles)
	for n := w.names; n > 0; n >>= 1 {
		b = strconv.AppendInt(append(b, '/'), int64(w.digits[n&1]), 10)
	}
	w.names++
	return string(strconv.AppendInt(append(b, '/'), int64(fd), 10))
}
