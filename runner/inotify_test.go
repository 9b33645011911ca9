package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codespace/openat2fs"
	"codespace/tests/need"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

func TestWatchTellsWhatHappened(t *testing.T) {
	p := newPlot(t)
	must(t, os.MkdirAll(p.at("deep/er"), 0o755))
	p.watch(defaultWatchLimits)
	for _, in := range []string{"", "deep/", "deep/er/"} {
		p.write(in + "file")
		p.expect("Create "+in+"file", "Modify "+in+"file")
		must(t, os.Chmod(p.at(in+"file"), 0o600))
		p.expect("Modify " + in + "file")
		must(t, os.Rename(p.at(in+"file"), p.at(in+"other")))
		p.expect("Rename "+in+"file", "Create "+in+"other")
		must(t, os.Remove(p.at(in+"other")))
		p.expect("Remove " + in + "other")
		must(t, os.Symlink("/etc", p.at(in+"link")))
		p.expect("Create " + in + "link")
	}
}

func TestWatchSeesNewDirectories(t *testing.T) {
	p := newPlot(t).watch(defaultWatchLimits)
	must(t, os.MkdirAll(p.at("a/b/c"), 0o755))
	p.write("a/b/c/early") // perhaps before c is watched
	all := p.settled()
	for _, made := range []string{"Create a/b", "Create a/b/c", "Create a/b/c/early"} {
		if !slices.Contains(all, made) && !slices.Contains(all, "ResyncRequired .") {
			t.Errorf("%s was missed without a word: %q", made, all)
		}
	}
	p.write("a/b/c/late")
	p.expect("Create a/b/c/late")
}

func TestWatchAfterDirectoryIsRenamed(t *testing.T) {
	p := newPlot(t)
	must(t, os.MkdirAll(p.at("old/sub"), 0o755))
	p.watch(defaultWatchLimits)
	must(t, os.Rename(p.at("old"), p.at("new")))
	p.expect("Rename old", "Create new", "ResyncRequired .")
	p.write("new/sub/file")
	all := p.settled()
	if !slices.Contains(all, "Create new/sub/file") || slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, "old") }) {
		t.Errorf("below a renamed directory: %q", all)
	}
	// Two that change places, and one with a link.
	must(t, os.Mkdir(p.at("second"), 0o755))
	must(t, os.Symlink(p.outside, p.at("link")))
	p.settled()
	for _, pair := range [][2]string{{"new", "second"}, {"second", "link"}} {
		must(t, unix.Renameat2(unix.AT_FDCWD, p.at(pair[0]), unix.AT_FDCWD, p.at(pair[1]), unix.RENAME_EXCHANGE))
	}
	p.settled()
	p.write("link/sub/other")
	p.write("new/file")
	p.expect("Create link/sub/other", "Create new/file")
	p.same()
}

func TestWatchFollowsNoLink(t *testing.T) {
	p := newPlot(t)
	must(t, os.Symlink(p.outside, p.at("link")))
	control, err := fsnotify.NewWatcher() // by a path, the attack works
	must(t, err)
	must(t, control.Add(p.at("link")))
	if !watchedInodes(t)[inode(t, p.outside)] {
		t.Fatal("fsnotify does not follow links: this proves nothing")
	}
	must(t, control.Close())
	p.watch(defaultWatchLimits)
	must(t, os.Symlink(p.outside, p.at("later")))
	p.settled()
	must(t, os.WriteFile(filepath.Join(p.outside, "canary"), nil, 0o644))
	if all := p.settled(); len(all) > 0 {
		t.Errorf("told of what lies outside: %q", all)
	}
	p.same()
}

// A directory is exchanged with a link to the outside while it is being added.
func TestWatchOfExchangedDirectory(t *testing.T) {
	p := newPlot(t)
	must(t, os.Symlink(p.outside, p.at("link")))
	p.watch(defaultWatchLimits)
	before := inode(t, p.outside)
	for i := range 300 {
		must(t, os.MkdirAll(p.at("dir/sub"), 0o755))
		for range i % 4 {
			must(t, unix.Renameat2(unix.AT_FDCWD, p.at("dir"), unix.AT_FDCWD, p.at("link"), unix.RENAME_EXCHANGE))
		}
		must(t, os.WriteFile(filepath.Join(p.outside, "canary"), []byte("x"), 0o644))
		if watchedInodes(t)[before] {
			t.Fatal("the outside is watched")
		}
		if st, err := os.Lstat(p.at("dir")); err == nil && !st.IsDir() {
			must(t, os.Remove(p.at("dir")))
			must(t, os.Rename(p.at("link"), p.at("dir")))
			must(t, os.Symlink(p.outside, p.at("link")))
		}
		must(t, os.RemoveAll(p.at("dir")))
	}
	for _, e := range p.settled() {
		if strings.Contains(e, "canary") {
			t.Errorf("told of what lies outside: %s", e)
		}
	}
	must(t, os.MkdirAll(p.at("dir/sub"), 0o755))
	p.settled()
	p.write("dir/sub/file")
	p.expect("Create dir/sub/file")
	p.same()
}

func TestWatchOfDirectoryMovedOut(t *testing.T) {
	p := newPlot(t)
	must(t, os.MkdirAll(p.at("dir/sub"), 0o755))
	p.watch(defaultWatchLimits)
	p.write("dir/sub/before")
	p.expect("Create dir/sub/before")
	must(t, os.Rename(p.at("dir"), filepath.Join(p.outside, "dir")))
	p.expect("Rename dir", "ResyncRequired .")
	must(t, os.WriteFile(filepath.Join(p.outside, "dir/sub/after"), nil, 0o644))
	if all := p.settled(); len(all) > 0 {
		t.Errorf("told of what was moved out: %q", all)
	}
	p.same()
	must(t, os.Rename(filepath.Join(p.outside, "dir"), p.at("back")))
	p.expect("Create back", "ResyncRequired .")
	p.same()
	p.stops()
}

// Whatever is done to directories, and however fast, in the end those that are there
// are watched, under their paths.
func TestWatchKeepsUp(t *testing.T) {
	for seed := range uint64(8) {
		p := newPlot(t).watch(defaultWatchLimits)
		r := rand.New(rand.NewPCG(seed, 1))
		anywhere := func() string {
			path := p.dir
			for range 1 + r.IntN(3) {
				path = filepath.Join(path, string('a'+rune(r.IntN(4))))
			}
			return path
		}
		for range 1500 {
			switch a, b := anywhere(), anywhere(); r.IntN(8) {
			case 0, 1, 2:
				os.MkdirAll(a, 0o755)
			case 3, 4:
				os.Rename(a, b)
			case 5:
				unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
			case 6:
				os.RemoveAll(a)
			case 7:
				os.Rename(a, filepath.Join(p.outside, fmt.Sprint(r.Uint64())))
			}
		}
		p.settled()
		p.same()
		p.stops()
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

func TestWatchOfTooManyDirectories(t *testing.T) {
	p := newPlot(t)
	for i := range 9 {
		must(t, os.Mkdir(p.at(fmt.Sprint(i)), 0o755))
	}
	limits := defaultWatchLimits
	limits.directories, limits.partial = 4, 50*time.Millisecond
	p.watch(limits)
	if n := len(watchedInodes(t)); n != 4 {
		t.Errorf("%d directories are watched", n)
	}
	for range 3 { // it is said again and again
		if e := p.next(); e.Kind != resync || e.Epoch != 1 {
			t.Errorf("a watch of a part tells %v", e)
		}
	}
	p.write("file")
	p.expect("Create file")
}

func TestWatchAsOwner(t *testing.T) {
	p := newPlot(t)
	must(t, os.MkdirAll(p.at("mine/sub"), 0o700))
	must(t, os.Mkdir(p.at("closed"), 0))
	must(t, os.MkdirAll(p.at("list/sub"), 0o755))
	must(t, os.Chmod(p.at("list"), 0o644)) // what is in it can be seen, and not reached
	if os.Geteuid() == 0 {
		for _, dir := range []string{"", "mine", "mine/sub", "closed", "list"} {
			must(t, os.Chown(p.at(dir), 65534, 65534))
		}
		must(t, os.Mkdir(p.at("root's"), 0o700))
	}
	must(t, os.Chmod(filepath.Dir(p.dir), 0o755))
	must(t, os.Chmod(filepath.Dir(filepath.Dir(p.dir)), 0o755))
	p.watch(defaultWatchLimits)
	p.write("mine/sub/file")
	p.expect("Create mine/sub/file")
	if n := len(watchedInodes(t)); n != 4 {
		t.Errorf("%d directories are watched, the owner can read 4", n)
	}
	must(t, os.Chmod(p.at("closed"), 0o755))
	must(t, os.Chmod(p.at("list"), 0o755))
	p.expect("Modify closed", "Modify list")
	p.write("closed/file")
	p.write("list/sub/file")
	p.expect("Create closed/file", "Create list/sub/file")
}

// More happens than the kernel keeps for who does not listen.
func TestWatchOverflows(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	must(t, err)
	var most int
	fmt.Sscan(string(text), &most)
	need.Feature(t, "inotify-overflow", most <= 1<<17, fmt.Sprintf("fs.inotify.max_queued_events is %d", most))
	p := newPlot(t)
	must(t, os.Mkdir(p.at("sub"), 0o755))
	must(t, os.MkdirAll(p.at("leaves/sub"), 0o755))
	limits := defaultWatchLimits
	limits.rest = 10 * time.Millisecond
	p.watch(limits)
	p.feed.feedMu.Lock() // the watcher waits
	a, err := os.Create(p.at("a"))
	must(t, err)
	defer a.Close()
	b, err := os.Create(p.at("b"))
	must(t, err)
	defer b.Close()
	for range most + watchBuffer + 4096 {
		a.Write([]byte("x"))
		b.Write([]byte("x")) // else two in a row count as one
	}
	must(t, os.Mkdir(p.at("missed"), 0o755))
	must(t, os.Rename(p.at("leaves"), filepath.Join(p.outside, "leaves")))
	p.feed.feedMu.Unlock()
	for n, seq := uint64(0), uint64(1); n < 2; { // of the overflow, and when all is watched again
		e := p.next()
		if e.Epoch != 1 {
			t.Fatalf("an overflow leads to epoch %d", e.Epoch)
		}
		if e.Kind == resync {
			n += e.Seq - seq // two in a row are one
		}
		seq = e.Seq
	}
	p.write("sub/file")
	p.write("missed/file")
	p.expect("Create sub/file", "Create missed/file")
	p.same()
	p.stops()
}

// A watch that was added in the middle of a rename is given up by fsnotify, and added
// again.
func TestWatchGivenUpByFsnotify(t *testing.T) {
	p := newPlot(t)
	must(t, os.MkdirAll(p.at("dir/sub"), 0o755))
	p.watch(defaultWatchLimits)
	p.settled()
	name := p.watcher.top.below[component(t, "dir")].name
	must(t, p.watcher.notify.Remove(name))
	p.watcher.notify.Events <- fsnotify.Event{Name: name, Op: fsnotify.Rename}
	p.expect("ResyncRequired .")
	p.write("dir/sub/file")
	p.expect("Create dir/sub/file")
	p.same()
	p.stops()
}

// What stands in another directory at a watched one's path is not watched as if it
// stood in that one: nobody would tell when it is moved out.
func TestWatchOfReplacedParent(t *testing.T) {
	p := newPlot(t)
	must(t, os.Mkdir(p.at("dir"), 0o755))
	w, err := newWatcher(rootAt(t, p.dir), &p.feed, defaultWatchLimits)
	must(t, err)
	defer w.close()
	must(t, w.start(context.Background()))
	sub := entry{w.top.below[component(t, "dir")], component(t, "sub")}
	must(t, os.Rename(p.at("dir"), p.at("before")))
	must(t, os.MkdirAll(p.at("dir/sub"), 0o755))
	must(t, w.appeared(context.Background(), sub))
	if watchedInodes(t)[inode(t, p.at("dir/sub"))] {
		t.Error("it is watched")
	}
	must(t, os.Rename(p.at("dir"), p.at("after")))
	must(t, os.Rename(p.at("before"), p.at("dir")))
	must(t, os.Mkdir(p.at("dir/sub"), 0o755))
	must(t, w.appeared(context.Background(), sub))
	if !watchedInodes(t)[inode(t, p.at("dir/sub"))] {
		t.Error("in the directory itself it is not watched")
	}
}

func component(t *testing.T, unsafeName string) openat2fs.Name {
	name, err := openat2fs.ParseName(unsafeName)
	must(t, err)
	return name
}

func TestWatchWhoseReceiveFails(t *testing.T) {
	p := newPlot(t).watch(defaultWatchLimits)
	failure := errors.New("no more")
	p.watcher.notify.Errors <- failure
	if e := p.next(); e.Kind != resync || e.Epoch != 1 {
		t.Errorf("a failure is told as %v", e)
	}
	if <-p.ended; !errors.Is(p.err, failure) {
		t.Errorf("the watch ends with %v", p.err)
	}
}

func TestWatchIsToldNonsense(t *testing.T) {
	p := newPlot(t).watch(defaultWatchLimits)
	for _, e := range []fsnotify.Event{
		{Name: "/etc/passwd", Op: fsnotify.Write}, {Name: "..", Op: fsnotify.Create},
		{Name: p.watcher.top.name + "/..", Op: fsnotify.Create}, {Name: p.watcher.top.name + "/file", Op: 1 << 20},
	} {
		p.watcher.notify.Events <- e
		if got := p.next(); got.Kind != resync || got.Path != "." || got.Epoch != 1 {
			t.Errorf("%v is told as %v", e, got)
		}
	}
}

func TestWatchNamesNeverRepeat(t *testing.T) {
	w, seen := &watcher{digits: []int{7, 8}}, map[string]bool{}
	for range 1 << 17 {
		seen[w.name(9)] = true
	}
	if len(seen) != 1<<17 {
		t.Errorf("%d names for %d directories", len(seen), 1<<17)
	}
	w.names = 1<<38 - 1
	if n := strings.Count(w.name(9), "/"); n > 3+38+1 {
		t.Errorf("a name has %d components", n)
	}
}
