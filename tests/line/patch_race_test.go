package line_test

import (
	"encoding/json"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var raceCalls = flag.Int64("race-calls", 0, "calls of the race of exchanged names; 0: what fits into raceTime")

const raceTime = 20 * time.Second

// exchanged is a workspace whose names are exchanged all the time for links that lead
// outside, where everything has the same names and lines and a canary besides.
type exchanged struct {
	t            *testing.T
	dir, outside string
	s            *session
	stop         chan struct{}
	swaps        sync.WaitGroup

	turns, calls, canaries atomic.Int64
	mu                     sync.Mutex
	ended                  map[string]int    // how calls ended
	first                  map[string]string // and what the first of them was told
	kept                   map[string]bool
}

const canaryLine = "CANARY"

func newExchanged(t *testing.T) *exchanged {
	x := &exchanged{t: t, dir: workspace(t), outside: t.TempDir(), stop: make(chan struct{}), ended: map[string]int{}, first: map[string]string{}, kept: map[string]bool{}}
	for _, name := range []string{"leaf", "dir/file", "a/b/file", "a/b.d/file", "plain"} {
		write(t, x.dir, disk{name: "inside\n0\n"})
	}
	for _, name := range []string{"leaf", "file", "n", canaryLine + "-name"} {
		write(t, x.outside, disk{name: canaryLine + "\n0\n"})
	}
	must(t, os.Symlink(x.outside+"/leaf", x.dir+"/leaf.link"))
	must(t, os.Symlink(x.outside, x.dir+"/dir.link"))
	must(t, os.Symlink(x.outside+"/.", x.dir+"/a/b.link"))
	x.s = start(t, x.dir)
	x.swaps.Go(func() { x.exchange("leaf", "leaf.link", "dir", "dir.link") })
	x.swaps.Go(func() { x.exchange("a/b", "a/b.link", "a/b.d", "a/b") })
	return x
}

func (x *exchanged) exchange(pairs ...string) {
	for i := 0; ; i = (i + 2) % len(pairs) {
		select {
		case <-x.stop:
			return
		default:
		}
		if unix.Renameat2(unix.AT_FDCWD, filepath.Join(x.dir, pairs[i]), unix.AT_FDCWD, filepath.Join(x.dir, pairs[i+1]), unix.RENAME_EXCHANGE) == nil {
			x.turns.Add(1)
		}
		time.Sleep(20 * time.Microsecond) // as long as a few system calls: else the two cores only exchange
	}
}

// attempt is one call that an agent makes.
type attempt struct {
	tool string
	args fields
}

func attemptsToLook() []attempt {
	var all []attempt
	for _, path := range []string{"leaf", "dir/file", "a/b/file", "dir/leaf", "a/b/" + canaryLine + "-name"} {
		all = append(all, attempt{"read", fields{"path": path}}, attempt{"version", fields{"paths": []string{path}}})
	}
	for _, glob := range []string{"**", "dir/*", "a/b/**"} {
		all = append(all, attempt{"find", fields{"glob": glob}})
	}
	return all
}

func attemptsToChange() []attempt {
	var all []attempt
	for _, hunks := range []string{
		"*** Update File: leaf\n@@\n-0\n+1\n", "*** Update File: leaf\n@@\n-1\n+0\n", "*** Update File: dir/file\n@@\n-0\n+1\n", "*** Update File: dir/file\n@@\n-1\n+0\n",
		"*** Add File: dir/n\n+x\n", "*** Update File: dir/n\n*** Move to: a/b/m\n", "*** Delete File: a/b/m\n", "*** Delete File: dir/n\n",
		"*** Add File: a/b/c/d/n\n+x\n*** Update File: plain\n@@\n-0\n+1\n", "*** Delete File: a/b/c/d/n\n*** Update File: plain\n@@\n-1\n+0\n",
		"*** Update File: a/b/file\n@@\n-0\n+1\n*** Update File: leaf\n@@\n-0\n+1\n", "*** Update File: a/b/file\n@@\n-1\n+0\n", "*** Delete File: dir/leaf\n",
	} {
		all = append(all, attempt{"apply_patch", fields{"patch": around(hunks)}})
	}
	return all
}

// call makes calls in turn until the race is over.
func (x *exchanged) call(all []attempt, until time.Time) {
	for i := 0; ; i++ {
		n := x.calls.Add(1)
		if *raceCalls > 0 && n > *raceCalls || *raceCalls == 0 && time.Now().After(until) {
			x.calls.Add(-1)
			return
		}
		c := all[i%len(all)]
		c.args["workspace_id"] = x.s.workspace
		a, err := x.s.ask(c.tool, c.args)
		if err != nil {
			x.t.Error(err)
			return
		}
		x.count(c, a)
	}
}

func (x *exchanged) count(c attempt, a answer) {
	whole, err := json.Marshal(a.fields)
	if err != nil || strings.Contains(string(whole), `"`+canaryLine+`\n`) || strings.Contains(a.said, canaryLine+"\n") ||
		c.tool == "find" && strings.Contains(string(whole), canaryLine) {
		x.canaries.Add(1)
		x.t.Errorf("%v: %s", c, whole)
	}
	facts := x.facts(a)
	x.mu.Lock()
	defer x.mu.Unlock()
	how := "ok"
	if a.isError {
		how = strings.TrimSuffix(a.text("code")+" "+a.below("details").text("status"), " ")
	}
	if x.ended[c.tool+" "+how]++; x.ended[c.tool+" "+how] == 1 {
		x.first[c.tool+" "+how] = a.said
	}
	for _, fact := range facts {
		if kept := fact.text("kept"); kept != "" {
			x.kept[filepath.Base(kept)] = true
		}
	}
}

// facts are those of a patch that was brought back in part.
func (x *exchanged) facts(a answer) []answer {
	if a.below("details").number("facts_total") == 0 {
		return nil
	}
	op, err := x.s.ask("operation_status", fields{"operation_id": a.text("operation_id")})
	if err != nil || op.number("facts_total") == 0 {
		x.t.Errorf("no facts of %v: %v, %v", a.fields, op.fields, err)
	}
	return op.rows("facts")
}

// refusals are how calls may end that met a name in exchange.
var refusals = map[string]bool{"ok": true, "SYMLINK_REJECTED": true, "FILE_NOT_FOUND": true, "PATH_NOT_DIRECTORY": true, "SPECIAL_FILE_REJECTED": true, "PATH_CONTENDED": true,
	"INVALID_PATCH": true, "ADD_FILE_EXISTS": true, "MOVE_DESTINATION_EXISTS": true}

// So may a patch end that was planned and then met another disk. What a link has taken
// the place of, Landlock does not let a helper exchange: FILE_OPERATION_FAILED.
var metAnother = map[string]bool{"FILE_OPERATION_FAILED": true, "VERSION_CONFLICT": true, "SYMLINK_REJECTED": true, "PATH_CONTENDED": true, "FILE_NOT_FOUND": true, "PATH_NOT_DIRECTORY": true}

// TestWholeLineWhileNamesAreExchanged: nothing of what lies outside is told, found or
// changed, whatever wins.
func TestWholeLineWhileNamesAreExchanged(t *testing.T) {
	x := newExchanged(t)
	before := seen(t, x.outside, true)
	until := time.Now().Add(raceTime)
	var agents, control sync.WaitGroup
	for range 2 {
		agents.Go(func() { x.call(attemptsToLook(), until) })
	}
	agents.Go(func() { x.call(attemptsToChange(), until) })
	met := 0
	control.Go(func() { met = x.plainReads() })
	agents.Wait()
	close(x.stop)
	x.swaps.Wait()
	control.Wait()
	t.Logf("%d calls, %d exchanges, %d canaries; a plain open met %d; %v", x.calls.Load(), x.turns.Load(), x.canaries.Load(), met, x.ended)
	same(t, seen(t, x.outside, true), before)
	if met == 0 {
		t.Error("control: a plain open never met the canary")
	}
	x.judge()
}

// plainReads is the control: how often a plain open meets the canary.
func (x *exchanged) plainReads() (met int) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-x.stop:
			return met
		case <-tick.C:
		}
		content, _ := os.ReadFile(filepath.Join(x.dir, []string{"leaf", "dir/file", "a/b/file"}[i%3]))
		if strings.HasPrefix(string(content), canaryLine) {
			met++
		}
	}
}

// judge wants calls of every tool to have met both sides and to have ended as they may.
func (x *exchanged) judge() {
	for how, n := range x.ended {
		tool, code, _ := strings.Cut(how, " ")
		bare, status, recorded := strings.Cut(code, " ")
		if !recorded && !refusals[bare] || recorded && (tool != "apply_patch" || !metAnother[bare]) {
			x.t.Errorf("%d calls ended as %q %q: %s", n, how, status, x.first[how])
		}
	}
	for _, how := range []string{"read ok", "read SYMLINK_REJECTED", "find ok", "version ok", "apply_patch ok", "apply_patch SYMLINK_REJECTED"} {
		if x.ended[how] == 0 {
			x.t.Errorf("no call ended as %q", how)
		}
	}
	x.wantsKept()
}

// wantsKept wants the temporaries that facts name to be there, under whatever name
// their directory now has, and no others.
func (x *exchanged) wantsKept() {
	found := map[string]bool{}
	must(x.t, filepath.WalkDir(x.dir, func(at string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(at), ".codespace-tmp-") {
			found[filepath.Base(at)] = true
		}
		return err
	}))
	x.t.Logf("%d facts name what is kept", len(x.kept))
	if !maps.Equal(found, x.kept) {
		x.t.Errorf("temporaries %v are there, and %v are named; stderr: %s", found, x.kept, x.s.stderr.tail())
	}
}

// tail is what was said that is no record of a call.
func (n *notes) tail() string {
	var all []string
	for line := range strings.Lines(n.String()) {
		if !strings.Contains(line, "msg=call") {
			all = append(all, line)
		}
	}
	return strings.Join(all[max(0, len(all)-20):], "")
}
