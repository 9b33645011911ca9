package openat2fs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"codespace/openat2fs"

	"golang.org/x/sys/unix"
)

// raced is a workspace in which names that are read are exchanged all the time
// for links, directories and FIFOs that lead outside or would block.
type raced struct {
	*ground
	stop  chan struct{}
	done  sync.WaitGroup
	turns atomic.Int64 // exchanges made
}

func newRaced(t *testing.T) *raced {
	r := &raced{ground: newGround(t, openat2fs.Limits{}), stop: make(chan struct{})}
	r.write("leaf", "inside")
	r.link("leaf.link", filepath.Join(r.outside, "canary"))
	r.write("dir/canary", "inside")
	r.link("dir.link", r.outside)
	r.write("a/b/c/canary", "inside")
	r.link("a/b.link", r.outside+"/.")
	r.write("a/b.d/c/canary", "inside")
	r.write("mixed", "inside")
	must(t, syscall.Mkfifo(r.at("mixed.fifo"), 0o666))
	must(t, os.Mkdir(r.at("mixed.dir"), 0o755))
	r.done.Go(func() { r.exchange("leaf", "leaf.link", "dir", "dir.link", "mixed", "mixed.fifo") })
	r.done.Go(func() { r.exchange("a/b", "a/b.link", "a/b.d", "a/b", "mixed", "mixed.dir") })
	t.Cleanup(func() {
		close(r.stop)
		r.done.Wait()
		r.untouched()
	})
	return r
}

// exchange swaps pairs of names until the test is over.
func (r *raced) exchange(pairs ...string) {
	for i := 0; ; i = (i + 2) % len(pairs) {
		select {
		case <-r.stop:
			return
		default:
		}
		unix.Renameat2(unix.AT_FDCWD, r.at(pairs[i]), unix.AT_FDCWD, r.at(pairs[i+1]), unix.RENAME_EXCHANGE)
		r.turns.Add(1)
	}
}

var racedPaths = []string{"leaf", "dir/canary", "a/b/c/canary", "a/b/canary", "mixed"}

// tries is how often an attack is made.
func tries() int {
	if testing.Short() {
		return 100_000
	}
	return 1_000_000
}

// expected are the answers that an exchanged name may give.
var expected = map[openat2fs.Code]bool{openat2fs.SymlinkRejected: true, openat2fs.FileNotFound: true, openat2fs.PathNotDirectory: true,
	openat2fs.SpecialFileRejected: true, openat2fs.PathContended: true}

// outcome counts what reads gave.
type outcome struct {
	read  atomic.Int64
	codes sync.Map
}

func (o *outcome) String() string {
	s := fmt.Sprintf("%d read", o.read.Load())
	o.codes.Range(func(code, n any) bool { s += fmt.Sprintf(", %d %v", n.(*atomic.Int64).Load(), code); return true })
	return s
}

func (o *outcome) refused(err error) openat2fs.Code {
	code := codeOf(err)
	n, _ := o.codes.LoadOrStore(code, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	return code
}

// TestControlExchange shows that the attack works where a path is simply opened.
func TestControlExchange(t *testing.T) {
	r := newRaced(t)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		for _, name := range racedPaths[:4] {
			content, _ := os.ReadFile(r.at(name))
			if string(content) == canary {
				return
			}
		}
	}
	t.Error("a plain open never met the canary: the attack attacks nothing")
}

// TestReadWhileNamesAreExchanged: no byte from outside, whatever wins.
func TestReadWhileNamesAreExchanged(t *testing.T) {
	r := newRaced(t)
	var paths []openat2fs.Path
	for _, name := range racedPaths {
		paths = append(paths, path(t, name))
	}
	var out outcome
	var slowest atomic.Int64
	r.attack(tries(), func(i int) bool {
		start := time.Now()
		content, err := r.oneRead(i, paths)
		slowest.Store(max(slowest.Load(), int64(time.Since(start))))
		if err != nil {
			if code := out.refused(err); !expected[code] {
				t.Errorf("%v: %v", paths[i%len(paths)], err)
				return false
			}
			return true
		}
		out.read.Add(1)
		if string(content) != "inside" {
			t.Errorf("%v: read %q", paths[i%len(paths)], content)
			return false
		}
		return true
	})
	t.Logf("%d tries, %d exchanges: %v; slowest %v", tries(), r.turns.Load(), &out, time.Duration(slowest.Load()))
	if _, links := out.codes.Load(openat2fs.SymlinkRejected); out.read.Load() == 0 || !links {
		t.Error("only one side was ever seen")
	}
}

// oneRead takes the ways of reading in turn.
func (r *raced) oneRead(i int, paths []openat2fs.Path) ([]byte, error) {
	p, ctx := paths[i%len(paths)], context.Background()
	if i/len(paths)%2 == 0 {
		page, err := r.root.Read(ctx, p, openat2fs.Range{})
		return page.Content, err
	}
	content, _, err := r.root.Load(ctx, p, nil)
	return content, err
}

// TestFindWhileNamesAreExchanged: the directory outside holds names that are
// nowhere inside, and none is found.
func TestFindWhileNamesAreExchanged(t *testing.T) {
	r := newRaced(t)
	must(t, os.Rename(filepath.Join(r.outside, "canary"), filepath.Join(r.outside, "canary-name")))
	t.Cleanup(func() {
		must(t, os.Rename(filepath.Join(r.outside, "canary-name"), filepath.Join(r.outside, "canary")))
	})
	var inside atomic.Int64
	r.attack(tries()/4, func(i int) bool { // each opens several directories
		found, err := r.root.Find(context.Background(), openat2fs.Query{Glob: []string{"**", "dir/*", "a/b/**"}[i%3]})
		if err != nil {
			t.Error(err)
			return false
		}
		for _, p := range found.Paths {
			if strings.Contains(p.String(), "canary-name") {
				t.Errorf("found %v", p)
				return false
			}
			inside.Add(1)
		}
		return true
	})
	t.Logf("%d finds, %d exchanges, %d paths", tries()/4, r.turns.Load(), inside.Load())
	if inside.Load() == 0 {
		t.Error("nothing was ever found")
	}
}

// TestWriteWhileNamesAreExchanged: what is written lands inside or nowhere.
func TestWriteWhileNamesAreExchanged(t *testing.T) {
	r := newRaced(t)
	var written, refused atomic.Int64
	r.attack(tries()/50, func(i int) bool {
		d, _, err := r.root.MakeDirs(context.Background(), path(t, []string{"dir/sub", "a/b/c", "leaf/sub"}[i%3]), 0o755)
		if err != nil {
			refused.Add(1)
			return true
		}
		defer d.Close()
		temp, err := d.CreateTemp(openat2fs.TempName())
		if err != nil {
			return true
		}
		temp.Write([]byte("inside"))
		temp.Close()
		if openat2fs.Rename(temp.Place, openat2fs.Place{Dir: d, Name: name(t, "canary")}, openat2fs.Replace) == nil {
			written.Add(1)
		}
		return true
	})
	t.Logf("%d written, %d refused, %d exchanges", written.Load(), refused.Load(), r.turns.Load())
	if written.Load() == 0 || refused.Load() == 0 {
		t.Error("only one side was ever seen")
	}
}

// attack makes n tries, two at a time, and ends early when one says false.
func (r *raced) attack(n int, try func(i int) bool) {
	var next atomic.Int64
	var tries sync.WaitGroup
	for range 2 {
		tries.Go(func() {
			for i := int(next.Add(1)); i <= n && try(i); i = int(next.Add(1)) {
			}
		})
	}
	tries.Wait()
}
