package runner

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"codespace/openat2fs"
	"codespace/policy"
	"codespace/runner/files"
	"codespace/sandbox"
	"codespace/tests/need"
)

// yard is a runner with one workspace, and what it tells of it.
type yard struct {
	t      *testing.T
	dir    string
	runner *Runner
	id     string
	digest string
	events *subscription
}

func newYard(t *testing.T, limits watchLimits) *yard {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	y := &yard{t: t, dir: filepath.Join(top, "workspace")}
	must(t, os.Mkdir(y.dir, 0o755))
	must(t, os.WriteFile(filepath.Join(y.dir, "file"), []byte("content"), 0o644))
	registry, err := policy.Embedded(y.dir, policy.Options{Environ: func(string) (string, bool) { return top + "/home", true }})
	must(t, err)
	y.id = registry.IDs()[0]
	w, _ := registry.Workspace(y.id)
	y.digest = w.Digest()
	y.runner = New(registry, Place{}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	y.runner.watchLimits = limits
	y.events = y.known().subscribe(1 << 16)
	t.Cleanup(y.close)
	return y
}

func (y *yard) close() {
	y.runner.Close()
	y.runner.rootMu.Lock()
	defer y.runner.rootMu.Unlock()
	for id, at := range y.runner.roots.roots {
		at.Close()
		delete(y.runner.roots.roots, id)
	}
}

func (y *yard) known() *watched {
	y.runner.watchMu.Lock()
	defer y.runner.watchMu.Unlock()
	return y.runner.knownLocked(y.id)
}

// read is a file operation.
func (y *yard) read() {
	y.t.Helper()
	got, err := y.runner.ReadFile(context.Background(), files.ReadRequest{Workspace: y.id, Digest: y.digest, Path: "file"})
	if err != nil || string(got.Content) != "content" {
		y.t.Fatalf("read %q: %v", got.Content, err)
	}
}

// until waits for an event.
func (y *yard) until(kind eventKind, path string) event {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		e, ok := y.events.next(ctx)
		if !ok {
			y.t.Fatalf("no %s %s", kind, path)
		}
		if e.Kind == kind && e.Path == path {
			return e
		}
	}
}

// over waits until the newest watcher has ended.
func (y *yard) over() *watched {
	y.t.Helper()
	f := y.known()
	y.runner.watchMu.Lock()
	ended := f.ended
	y.runner.watchMu.Unlock()
	if ended == nil {
		y.t.Fatal("nothing was started")
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		y.t.Fatal("the watch does not end")
	}
	return f
}

func openDescriptors(t *testing.T) []string {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	var names []string
	for _, fd := range all {
		name, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if err == nil { // the one that listed them is closed
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestFileOperationStartsWatch(t *testing.T) {
	y := newYard(t, defaultWatchLimits)
	y.read()
	if e := y.until(resync, "."); e.Epoch != 1 {
		t.Errorf("the first watch is of epoch %d", e.Epoch)
	}
	must(t, os.WriteFile(filepath.Join(y.dir, "new"), nil, 0o644))
	y.until(created, "new")
}

func TestWatchEndsWithRunner(t *testing.T) {
	newYard(t, defaultWatchLimits).close() // what is opened once is open now
	before, running := openDescriptors(t), runtime.NumGoroutine()
	y := newYard(t, defaultWatchLimits)
	y.read()
	y.until(resync, ".")
	if now := openDescriptors(t); len(now) <= len(before) || runtime.NumGoroutine() <= running {
		t.Fatalf("a watch shows in nothing: %q", now)
	}
	y.close()
	y.over()
	if now := openDescriptors(t); !slices.Equal(now, before) {
		t.Errorf("left open: %q, before %q", now, before)
	}
	for wait := time.Now(); runtime.NumGoroutine() > running; runtime.Gosched() { // they have said that they end
		if time.Since(wait) > 10*time.Second {
			stacks := make([]byte, 1<<16)
			t.Fatalf("goroutines left:\n%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
	y.runner.watch(y.id, rootAt(t, y.dir))
	if y.known().root != nil {
		t.Error("a runner that has ended starts a watch")
	}
}

func TestUnusedWatchIsPutAway(t *testing.T) {
	limits := defaultWatchLimits
	limits.idle = 20 * time.Millisecond
	y := newYard(t, limits)
	y.read()
	y.until(resync, ".")
	f := y.over()
	if n := len(watchedInodes(t)); n != 0 {
		t.Errorf("%d directories are watched", n)
	}
	if f.failures != 0 {
		t.Error("that counts as a failure")
	}
	y.read()
	if e := y.until(resync, "."); e.Epoch != 2 {
		t.Errorf("the second watch is of epoch %d", e.Epoch)
	}
}

func TestWatchOfAnotherRoot(t *testing.T) {
	y := newYard(t, defaultWatchLimits)
	y.read()
	y.until(resync, ".")
	// Whether or not the watch has noticed, the next operation is in the new one.
	must(t, os.Rename(y.dir, y.dir+".old"))
	must(t, os.Mkdir(y.dir, 0o755))
	must(t, os.WriteFile(filepath.Join(y.dir, "file"), []byte("content"), 0o644))
	y.read()
	for y.until(resync, ".").Epoch != 2 {
		y.read() // the first may still have been ending
	}
	must(t, os.WriteFile(filepath.Join(y.dir+".old", "elsewhere"), nil, 0o644))
	must(t, os.WriteFile(filepath.Join(y.dir, "here"), nil, 0o644))
	for {
		e, ok := y.events.next(context.Background())
		if !ok || e.Path == "elsewhere" {
			t.Fatal("the old root is watched")
		}
		if e.Path == "here" {
			break
		}
	}
}

func TestRootThatGoesIsGivenUp(t *testing.T) {
	for kind, leave := range map[eventKind]func(dir string) error{
		renamed: func(dir string) error { return os.Rename(dir, dir+".away") },
		removed: os.RemoveAll,
	} {
		y := newYard(t, defaultWatchLimits)
		y.read()
		y.until(resync, ".")
		y.runner.rootMu.Lock()
		at := y.runner.roots.roots[y.id]
		y.runner.rootMu.Unlock()
		prepared := &pool{alarm: time.AfterFunc(time.Hour, func() {}), due: time.Now().Add(time.Hour)}
		y.runner.boxMu.Lock()
		y.runner.boxes[y.id] = &box{root: sandbox.Root{Path: y.dir, Device: at.is.Device, Inode: at.is.Inode},
			idle: time.AfterFunc(time.Hour, func() {}), pools: map[sandbox.Wish]*pool{{}: prepared}}
		y.runner.boxMu.Unlock()
		must(t, leave(y.dir))
		y.until(kind, ".")
		f := y.over()
		if f.failures != 0 {
			t.Errorf("%s of the root counts as a failure", kind)
		}
		y.runner.rootMu.Lock()
		if len(y.runner.roots.roots) != 0 {
			t.Errorf("the handle of a root that was %s is kept", kind)
		}
		y.runner.rootMu.Unlock()
		y.runner.boxMu.Lock()
		if !prepared.due.IsZero() {
			t.Errorf("cells are prepared for a root that was %s", kind)
		}
		y.runner.boxMu.Unlock()
		y.close()
	}
}

// Another root's end gives nothing up.
func TestRootOfAnotherIsKept(t *testing.T) {
	y := newYard(t, defaultWatchLimits)
	y.read()
	y.runner.rootGone(y.id, openat2fs.Identity{Device: 1, Inode: 1})
	if len(y.runner.roots.roots) != 1 {
		t.Error("the handle is given up")
	}
}

// Two watchers of a workspace never run at the same time: their events would mix.
func TestWatchWaitsForTheOneBefore(t *testing.T) {
	y := newYard(t, defaultWatchLimits)
	before := make(chan struct{})
	y.known().ended = before
	y.read()
	select {
	case <-y.events.wake:
		t.Error("it does not wait")
	case <-time.After(50 * time.Millisecond):
	}
	close(before)
	y.until(resync, ".")
}

func TestWatchesAreFew(t *testing.T) {
	limits := defaultWatchLimits
	limits.workspaces = 0
	y := newYard(t, limits)
	y.read()
	y.read()
	if f := y.known(); f.root != nil || f.failures != 1 {
		t.Errorf("beyond the limit: %d tries, %v", f.failures, f.root)
	}
}

// confined says what the user namespace that a test runs in has none of.
var confined = flag.String("confined", "", "")

// Without inotify instances, and with fewer watches than directories, the file tools
// work, and nothing is left of the tries.
func TestFilesWhereNothingCanBeWatched(t *testing.T) {
	if *confined == "" {
		need.UserNamespaces(t)
		for _, what := range []string{"max_inotify_instances=0", "max_inotify_watches=3"} {
			name, value, _ := strings.Cut(what, "=")
			cmd := exec.Command("/bin/sh", "-c", `echo $1 >/proc/sys/user/$2 && exec $3 -test.run '^TestFilesWhereNothingCanBeWatched$' -confined $2`,
				"sh", value, name, os.Args[0])
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}}
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
				t.Errorf("%s: %v\n%s", what, err, out)
			}
		}
		return
	}
	y := newYard(t, defaultWatchLimits)
	must(t, os.MkdirAll(filepath.Join(y.dir, "a/b/c/d"), 0o755))
	y.read()
	f := y.over()
	running := runtime.NumGoroutine()
	for range 50 { // none of which tries again
		y.read()
		found, err := y.runner.Find(context.Background(), files.FindRequest{Workspace: y.id, Digest: y.digest})
		if err != nil || !slices.Equal(found.Paths, []string{"file"}) {
			t.Fatalf("found %q: %v", found.Paths, err)
		}
	}
	if f.failures != 1 || f.root != nil || len(watchedInodes(t)) != 0 || runtime.NumGoroutine() > running {
		t.Errorf("%d tries, %d goroutines, %d before", f.failures, runtime.NumGoroutine(), running)
	}
	if _, ok, _ := y.events.take(); ok {
		t.Error("something was told")
	}
	// A try that is due fails like the first, and the next is further off.
	y.runner.watchMu.Lock()
	first := time.Until(f.again)
	f.again = time.Time{}
	y.runner.watchMu.Unlock()
	y.read()
	if y.over(); f.failures != 2 || time.Until(f.again) < first*3/2 {
		t.Errorf("%d tries, the next in %v, before %v", f.failures, time.Until(f.again), first)
	}
}

func TestLaggedSubscriber(t *testing.T) {
	var f feed
	slow, fast := f.subscribe(3), f.subscribe(100)
	f.begin()
	for _, path := range []string{"a", "b", "c", "d"} {
		f.tell(created, path)
	}
	var got [2][]event
	for i, s := range []*subscription{slow, fast} {
		s.cancel()
		for e, ok := s.next(context.Background()); ok; e, ok = s.next(context.Background()) {
			got[i] = append(got[i], e)
		}
	}
	if want := []event{{resync, ".", 1, 4}, {created, "d", 1, 5}}; !slices.Equal(got[0], want) {
		t.Errorf("who lags is told %v, not %v", got[0], want)
	}
	if len(got[1]) != 5 || got[1][4] != (event{created, "d", 1, 5}) {
		t.Errorf("who does not is told %v", got[1])
	}
	f.tell(created, "e")
	if _, ok := fast.next(context.Background()); ok {
		t.Error("a cancelled subscription goes on")
	}
}
