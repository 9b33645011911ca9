package runner

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"codespace/openat2fs"
)

// watchLimits bound what watching may take. They are the program's own; an operator
// has nothing to set.
type watchLimits struct {
	workspaces  int           // watched at the same time, each with one inotify instance
	directories int           // of one workspace; of what lies in more there is no event
	queue       int           // events that wait for one subscriber
	idle        time.Duration // without a file operation, the watch is put away
	retry       time.Duration // after a watch that failed; doubled each time, up to idle
	rest        time.Duration // after an overflow, before the directories are watched again
	partial     time.Duration // between two ResyncRequired while not all are watched
	look        time.Duration // after a name in the root went, whether the root did too
}

var defaultWatchLimits = watchLimits{
	workspaces: 16, directories: 8192, queue: 1024, idle: boxIdle,
	retry: time.Minute, rest: time.Second, partial: time.Minute, look: 100 * time.Millisecond,
}

// watches are the watches of the workspaces whose files are in use, one each. A
// watch only ever gives hints. It is started in the background by a file operation,
// which does not wait for it and does not learn whether there is one; it ends when
// the files were not asked for in a while, when the root has gone and with the
// runner. Nothing is told while none runs.
type watches struct {
	watchLimits watchLimits
	watchLog    *slog.Logger
	rootGone    func(workspace string, is openat2fs.Identity) // renamed or removed

	watchMu  sync.Mutex // guards what follows
	watched  map[string]*watched
	shut     bool
	watchers sync.WaitGroup
}

// watched is a workspace whose files were in use. What follows its name is guarded by
// watches.watchMu.
type watched struct {
	feed
	workspace string
	root      *root // of the watcher that runs; nil if none does
	end       context.CancelFunc
	ended     chan struct{} // closed when the newest watcher has
	idle      *time.Timer
	used      time.Time
	failures  int
	again     time.Time // no watcher is started before
}

// watch is called by each file operation.
func (w *watches) watch(workspace string, at *root) {
	w.watchMu.Lock()
	defer w.watchMu.Unlock()
	f, now := w.knownLocked(workspace), time.Now()
	f.used = now
	switch {
	case f.root == at || w.shut || now.Before(f.again):
	case f.root != nil: // another directory stands at its path now
		f.end()
		f.idle.Stop()
		w.startLocked(f, at)
	case w.runningLocked() < w.watchLimits.workspaces:
		w.startLocked(f, at)
	default:
		w.failedLocked(f)
	}
}

func (w *watches) knownLocked(workspace string) *watched {
	if w.watched == nil {
		w.watched = map[string]*watched{}
	}
	if w.watched[workspace] == nil {
		w.watched[workspace] = &watched{workspace: workspace}
	}
	return w.watched[workspace]
}

func (w *watches) runningLocked() int {
	n := 0
	for _, f := range w.watched {
		if f.root != nil {
			n++
		}
	}
	return n
}

// startLocked starts a watcher, which waits for the one before it to end.
func (w *watches) startLocked(f *watched, at *root) {
	ctx, cancel := context.WithCancel(context.Background())
	before, ended := f.ended, make(chan struct{})
	f.root, f.end, f.ended = at, cancel, ended
	f.idle = time.AfterFunc(w.watchLimits.idle, func() { w.unused(f, at) })
	w.watchers.Go(func() {
		defer close(ended)
		defer cancel()
		if before != nil {
			<-before
		}
		s := f.subscribe(w.watchLimits.queue)
		var follower sync.WaitGroup
		follower.Go(func() { w.follow(f.workspace, at.is, s) })
		started := time.Now()
		err := watchRoot(ctx, at, &f.feed, w.watchLimits)
		w.over(f, at, started, err)
		s.cancel()
		follower.Wait()
	})
}

// follow is the runner's own use of the events. It is a kindness to what is kept
// open for a root that has gone; whether a root is still the one meant is found out
// at each use.
func (w *watches) follow(workspace string, is openat2fs.Identity, s *subscription) {
	for {
		e, ok := s.next(context.Background())
		if !ok {
			return
		}
		if e.Path == "." && (e.Kind == removed || e.Kind == renamed) {
			w.rootGone(workspace, is)
		}
	}
}

// over is called when a watcher has ended.
func (w *watches) over(f *watched, at *root, started time.Time, err error) {
	w.watchMu.Lock()
	defer w.watchMu.Unlock()
	if f.root != at {
		return // another has taken its place
	}
	f.root = nil
	f.idle.Stop()
	if err == nil || errors.Is(err, errRootGone) {
		return
	}
	if time.Since(started) > w.watchLimits.idle {
		f.failures = 0
	}
	w.failedLocked(f)
	w.watchLog.Warn("cannot watch a workspace", "workspace", f.workspace, "error", err, "again", time.Until(f.again).Round(time.Second))
}

// failedLocked puts the next try off.
func (w *watches) failedLocked(f *watched) {
	wait := w.watchLimits.retry << min(f.failures, 16)
	f.failures++
	f.again = time.Now().Add(min(wait, w.watchLimits.idle))
}

// unused puts a watch away when the files were not asked for in a while.
func (w *watches) unused(f *watched, at *root) {
	w.watchMu.Lock()
	defer w.watchMu.Unlock()
	if f.root != at {
		return
	}
	if left := w.watchLimits.idle - time.Since(f.used); left > 0 {
		f.idle.Reset(left)
		return
	}
	f.end()
}

// endWatches ends every watch; waitWatches waits until they have.
func (w *watches) endWatches() {
	w.watchMu.Lock()
	defer w.watchMu.Unlock()
	w.shut = true
	for _, f := range w.watched {
		if f.root != nil {
			f.end()
		}
	}
}

// waitWatches does not wait for ever: a watcher may be stuck in a file system that
// does not answer.
func (w *watches) waitWatches() {
	gone := make(chan struct{})
	go func() {
		w.watchers.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(watchEnd):
	}
}

const watchEnd = 10 * time.Second
