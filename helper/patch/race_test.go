package patch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"codespace/openat2fs"
	"codespace/openat2fs/v4a"
	"codespace/runner/patching"
)

// raced is a workspace in which names are exchanged all the time for links that lead
// outside, where the same names and lines are, and a canary; one of them for a FIFO.
type raced struct {
	*rig
	outside *rig
	stop    chan struct{}
	done    sync.WaitGroup
	turns   atomic.Int64

	mu    sync.Mutex // guards what follows, and is the lease of those who change
	ended map[string]int
	kept  map[string]bool
}

const canary = "CANARY"

func newRaced(t *testing.T) *raced {
	top := memory(t)
	must(t, os.Mkdir(top+"/ws", 0o755))
	must(t, os.Mkdir(top+"/outside", 0o755))
	r := &raced{rig: newRig(t, top+"/ws"), outside: newRig(t, top+"/outside"), stop: make(chan struct{}), ended: map[string]int{}, kept: map[string]bool{}}
	r.outside.lay(map[string]string{"leaf": canary + "\n0\n", "file": canary + "\n0\n", "n": canary + "\n", canary: canary})
	r.lay(map[string]string{"leaf": "inside\n0\n", "dir/file": "inside\n0\n", "a/b/file": "inside\n0\n", "a/b.d/file": "inside\n0\n", "mixed": "inside\n0\n"})
	must(t, unix.Mkfifo(r.at("mixed.fifo"), 0o666))
	for name, to := range map[string]string{"leaf.link": "/leaf", "dir.link": "", "a/b.link": "/."} {
		must(t, os.Symlink(r.outside.dir+to, r.at(name)))
	}
	r.done.Go(func() { r.exchange("leaf", "leaf.link", "dir", "dir.link", "mixed", "mixed.fifo") })
	r.done.Go(func() { r.exchange("a/b", "a/b.link", "a/b.d", "a/b") })
	return r
}

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

// said counts how a call ended, and wants nothing of the canary in what it gave.
func (r *raced) said(tool, gave string, err error) bool {
	how := "ok"
	var at *openat2fs.Error
	var in *v4a.Error
	var fault *patching.Fault
	switch {
	case err == nil:
	case errors.As(err, &fault):
		how = fault.Code
	case errors.As(err, &in):
		how = string(in.Code)
	case errors.As(err, &at):
		how = string(at.Code)
	default:
		how = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[tool+" "+how]++
	return !strings.Contains(gave, canary)
}

var racedPaths = []string{"leaf", "dir/file", "a/b/file", "dir/leaf", "a/b/n", "mixed"}

func (r *raced) read(i int) bool {
	p, err := openat2fs.ParsePath(racedPaths[i%len(racedPaths)])
	must(r.t, err)
	page, err := r.root.Read(context.Background(), p, openat2fs.Range{})
	return r.said("read", string(page.Content), err)
}

func (r *raced) find(i int) bool {
	found, err := r.root.Find(context.Background(), openat2fs.Query{Glob: []string{"**", "dir/*", "a/b/**"}[i%3]})
	return r.said("find", fmt.Sprint(found.Paths), err)
}

var racedPatches = []string{
	"*** Update File: leaf\n@@\n-0\n+1\n", "*** Update File: dir/file\n@@\n-0\n+1\n", "*** Update File: a/b/file\n@@\n-0\n+1\n*** Update File: leaf\n@@\n inside\n",
	"*** Add File: dir/n\n+x\n*** Update File: leaf\n@@\n-1\n+0\n", "*** Update File: dir/n\n*** Move to: a/b/n\n", "*** Delete File: a/b/n\n", "*** Delete File: dir/n\n",
	"*** Update File: leaf\n@@\n-1\n+0\n", "*** Update File: dir/file\n@@\n-1\n+0\n", "*** Update File: a/b/file\n@@\n-1\n+0\n", "*** Add File: a/b/made/here/n\n+x\n",
	"*** Delete File: a/b/made/here/n\n", "*** Delete File: dir/leaf\n",
	"*** Update File: mixed\n@@\n-0\n+1\n", "*** Update File: mixed\n@@\n-1\n+0\n",
}

// patch plans and applies, one at a time: so it is with a lease.
func (r *raced) patch(i int, lease *sync.Mutex) bool {
	lease.Lock()
	defer lease.Unlock()
	h := r.helper()
	defer h.end()
	p, err := h.planned(context.Background(), []byte("*** Begin Patch\n"+racedPatches[i%len(racedPatches)]+"*** End Patch\n"), nil)
	if err != nil {
		return r.said("plan", err.Error(), err)
	}
	o, err := h.apply(context.Background(), p)
	for tries := 0; err != nil && tries < 100; tries++ { // as the runner and then the gateway do
		r.said("apply, to be settled", "", err)
		next := r.helper()
		o, err = next.settle(context.Background(), p.Planned, errInterrupted)
		next.end()
	}
	if err == nil && o.Status != patching.Applied {
		err = &patching.Fault{Code: string(o.Status) + " " + causeOf(o)}
	}
	for _, f := range o.Facts {
		if f.Kept != "" {
			r.mu.Lock()
			r.kept[filepath.Base(f.Kept)] = true
			r.mu.Unlock()
		}
	}
	return r.said("apply", fmt.Sprint(o), err)
}

func causeOf(o patching.Outcome) string {
	if o.Cause == nil { // of what was interrupted
		return "ok"
	}
	return o.Cause.Code
}

// TestPatchesWhileNamesAreExchanged makes reads, finds and patches while what they are
// of is exchanged for links. Nothing outside is told or changed.
func TestPatchesWhileNamesAreExchanged(t *testing.T) {
	r := newRaced(t)
	outside := r.outside.tree()
	tries := int64(1_000_000)
	if testing.Short() || os.Geteuid() != 0 { // root's are enough: the code is the same
		tries = 100_000
	}
	began := time.Now()
	var next, patches atomic.Int64
	var lease sync.Mutex
	var agents sync.WaitGroup
	for range 2 {
		agents.Go(func() {
			for i := int(next.Add(1)); i <= int(tries); i = int(next.Add(1)) {
				ok := true
				switch {
				case i%20 == 0:
					patches.Add(1)
					ok = r.patch(i/20, &lease)
				case i%10 == 1:
					ok = r.find(i / 10)
				default:
					ok = r.read(i)
				}
				if !ok {
					t.Errorf("try %d told of the canary", i)
					return
				}
			}
		})
	}
	agents.Wait()
	close(r.stop)
	r.done.Wait()
	t.Logf("%d tries, %d of them patches, %d exchanges in %v: %v", tries, patches.Load(), r.turns.Load(), time.Since(began).Round(time.Second), r.ended)
	if d := differs(r.outside.tree(), outside); d != "" {
		t.Errorf("outside: %s", d)
	}
	r.judge()
}

// judge wants both sides to have been met, and no temporary that no fact names.
func (r *raced) judge() {
	r.t.Helper()
	for _, how := range []string{"read ok", "read SYMLINK_REJECTED", "find ok", "plan SYMLINK_REJECTED", "plan SPECIAL_FILE_REJECTED", "read SPECIAL_FILE_REJECTED", "apply ok", "apply failed_rolled_back VERSION_CONFLICT"} {
		if r.ended[how] == 0 {
			r.t.Errorf("none ended as %q", how)
		}
	}
	may := "ok SYMLINK_REJECTED FILE_NOT_FOUND PATH_NOT_DIRECTORY SPECIAL_FILE_REJECTED PATH_CONTENDED VERSION_CONFLICT INVALID_PATCH ADD_FILE_EXISTS MOVE_DESTINATION_EXISTS"
	for how, n := range r.ended {
		words := strings.Fields(how)
		if !strings.Contains(may, words[len(words)-1]) {
			r.t.Errorf("%d ended as %q", n, how)
		}
	}
	left, temporaries := map[string]int{}, map[string]bool{}
	for name, what := range r.tree() {
		if left[what[:min(len(what), 7)]]++; strings.HasPrefix(filepath.Base(name), ".codespace-tmp-") {
			temporaries[filepath.Base(name)] = true
		}
	}
	if !maps.Equal(temporaries, r.kept) {
		r.t.Errorf("temporaries %v are there, and facts name %v", temporaries, r.kept)
	}
	if left[`"inside`] < 5 || left["L------"] != 3 || left["p------"] != 1 { // no patch deletes one of them
		r.t.Errorf("what was exchanged is lost: %v", left)
	}
}

// The control: a plain open meets the canary, and a plain write changes it.
func TestControlNamesAreExchanged(t *testing.T) {
	r := newRaced(t)
	met, wrote := false, false
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && !(met && wrote); {
		content, _ := os.ReadFile(r.at("dir/file"))
		met = met || strings.HasPrefix(string(content), canary)
		os.WriteFile(r.at("dir/n"), []byte("written"), 0o644)
		wrote = wrote || r.outside.get("n") == "written"
	}
	close(r.stop)
	r.done.Wait()
	if !met || !wrote {
		t.Errorf("the attack attacks nothing: met %v, wrote %v", met, wrote)
	}
}
