package runner

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"codespace/openat2fs"
)

// plot is a workspace that is watched, and a directory beside it.
type plot struct {
	t            *testing.T
	dir, outside string
	feed         feed
	events       *subscription
	watcher      *watcher
	end          context.CancelFunc
	ended        chan struct{}
	err          error // once it has ended
	marks        int
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func rootAt(t testing.TB, dir string) *root {
	t.Helper()
	at, st, err := openRoot(dir)
	must(t, err)
	is := openat2fs.Identity{Device: at.Device, Inode: at.Inode}
	fs, err := openat2fs.Open(dir, is, openat2fs.Limits{})
	must(t, err)
	t.Cleanup(func() { fs.Close() })
	who := owner{st.Uid, st.Gid}
	return &root{is, who, newThreads(who), fs}
}

func newPlot(t *testing.T) *plot {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	p := &plot{t: t, dir: filepath.Join(top, "workspace"), outside: filepath.Join(top, "outside")}
	must(t, os.Mkdir(p.dir, 0o755))
	must(t, os.Mkdir(p.outside, 0o755))
	return p
}

// watch starts the watcher and waits until it runs.
func (p *plot) watch(limits watchLimits) *plot {
	p.t.Helper()
	p.events = p.feed.subscribe(1 << 20)
	var err error
	p.watcher, err = newWatcher(rootAt(p.t, p.dir), &p.feed, limits)
	must(p.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	p.end, p.ended = cancel, make(chan struct{})
	go func() {
		p.err = p.watcher.watch(ctx)
		p.watcher.close()
		close(p.ended)
	}()
	p.t.Cleanup(func() {
		cancel()
		<-p.ended
	})
	if e := p.next(); e != (event{resync, ".", 1, 1}) {
		p.t.Fatalf("an epoch begins with %v", e)
	}
	return p
}

func (p *plot) next() event {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	e, ok := p.events.next(ctx)
	if !ok {
		p.t.Fatal("no event")
	}
	return e
}

// settled is every event until now: those of one instance are in order, so that what
// happened before a mark is told before it.
func (p *plot) settled() []string {
	p.t.Helper()
	p.marks++
	mark := fmt.Sprint("mark-", p.marks)
	must(p.t, os.WriteFile(p.at(mark), nil, 0o644))
	var all []string
	for {
		e := p.next()
		if e.Path == mark {
			return all
		}
		if !strings.HasPrefix(e.Path, "mark-") {
			all = append(all, string(e.Kind)+" "+e.Path)
		}
	}
}

func (p *plot) at(path string) string { return filepath.Join(p.dir, path) }

func (p *plot) write(path string) {
	p.t.Helper()
	must(p.t, os.WriteFile(p.at(path), []byte("x"), 0o644))
}

func (p *plot) expect(want ...string) {
	p.t.Helper()
	all := p.settled()
	for _, w := range want {
		if !slices.Contains(all, w) {
			p.t.Errorf("no %q in %q", w, all)
		}
	}
	for _, e := range all {
		if path := e[strings.IndexByte(e, ' ')+1:]; path != "." && !filepath.IsLocal(path) {
			p.t.Errorf("%q is no path of the workspace", e)
		}
	}
}

// watchedInodes are those that inotify instances of this process watch (proc(5),
// fdinfo).
func watchedInodes(t testing.TB) map[uint64]bool {
	t.Helper()
	found := map[uint64]bool{}
	all, err := os.ReadDir("/proc/self/fdinfo")
	must(t, err)
	for _, fd := range all {
		f, err := os.Open("/proc/self/fdinfo/" + fd.Name())
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var wd, inode uint64
			if n, _ := fmt.Sscanf(lines.Text(), "inotify wd:%x ino:%x", &wd, &inode); n == 2 {
				found[inode] = true
			}
		}
		f.Close()
	}
	return found
}

func inode(t testing.TB, path string) uint64 {
	t.Helper()
	var st syscall.Stat_t
	must(t, syscall.Lstat(path, &st))
	return st.Ino
}

// same wants every directory of the workspace watched, and nothing else.
func (p *plot) same() {
	p.t.Helper()
	want := map[uint64]string{}
	must(p.t, filepath.WalkDir(p.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			want[inode(p.t, path)] = path
		}
		return err
	}))
	got := watchedInodes(p.t)
	for ino, path := range want {
		if !got[ino] {
			p.t.Errorf("%s is not watched", path)
		}
		delete(got, ino)
	}
	if len(got) > 0 {
		p.t.Errorf("watched besides the %d directories: inodes %v", len(want), got)
	}
}

// stops ends the watcher, and wants its directories to be where it thinks they are.
func (p *plot) stops() {
	p.t.Helper()
	p.end()
	<-p.ended
	must(p.t, p.err)
	for _, d := range p.watcher.byName {
		if at := p.at(d.path.String()); inode(p.t, at) != d.is.Inode {
			p.t.Errorf("another directory stands at %s", at)
		}
	}
	if len(p.watcher.byName) != len(p.watcher.byIdentity) {
		p.t.Errorf("%d names for %d directories", len(p.watcher.byName), len(p.watcher.byIdentity))
	}
}
