package sandbox_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"codespace/policy"
	"codespace/sandbox"

	"golang.org/x/sys/unix"
)

// A command with what it takes to survive: a session of its own, ignored signals,
// orphans, and a name by which the host finds it.
const stubborn = `for i in 1 2 3; do (setsid sh -c 'trap "" TERM INT HUP; sleep 1000; : '$1 & ) ; done; trap "" TERM; sleep 1000 & echo up; wait; wait`

// stubbornly starts it and waits until the host sees all of it.
func (b box) stubbornly(marker string) command {
	b.t.Helper()
	c := b.start(true, stubborn, "sh", marker)
	c.line()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(soon); len(marked("sleep 1000; : "+marker)) < 3; {
		select {
		case <-tick.C: // there is no event: another process starts
		case <-end:
			b.t.Fatalf("not shown: the host sees %q", marked(marker))
		}
	}
	return c
}

// ended wants nothing left of a marked command whose PID 1 is gone.
func ended(t *testing.T, c command, marker string) {
	t.Helper()
	done := make(chan struct{})
	go func() { c.Gone(); close(done) }()
	select {
	case <-done:
	case <-time.After(soon):
		t.Fatal("PID 1 goes on")
	}
	if left := marked(marker); len(left) > 0 {
		t.Errorf("PID 1 is gone and there is %q", left)
	}
}

// Whichever way PID 1 of a cell ends, all of the cell ends with it.
func TestCellEndsWhole(t *testing.T) {
	h := startHelper(t)
	b := h.prepare(h.plan(workspace(t)))
	for name, kill := range map[string]func(command){
		"killed from outside": func(c command) { unix.Kill(c.PID, unix.SIGKILL) },
		"Kill":                func(c command) { c.Kill() },
		"Close":               func(c command) { c.Close() },
		"KILL to the tree":    func(c command) { c.Signal(int(unix.SIGKILL), true) },
	} {
		marker := fmt.Sprintf("marker-%d-%s", os.Getpid(), strings.ReplaceAll(name, " ", "-"))
		c := b.stubbornly(marker)
		kill(c)
		ended(t, c, marker)
		leaf := c.Leaf
		c.Close()
		for _, dir := range []string{leaf.Memory, leaf.PIDs, leaf.Unified} {
			if _, err := os.Stat(dir); dir != "" && err == nil {
				t.Errorf("%s: the cgroup %s is left", name, dir)
			}
		}
	}
	b.says("works\n", "echo works")
}

// A bounded fork bomb ends at once.
func TestForkBombEnds(t *testing.T) {
	h := startHelper(t)
	dir := workspace(t)
	probe(t, dir)
	b := h.prepare(h.plan(dir, func(w *policy.Workspace) { w.Limits.PIDs = 250 }))
	marker := fmt.Sprint(1_000_000 + os.Getpid()) // an argument, ignored
	c := b.start(true, `exec ./probe fork 200 "$1"`, "sh", marker)
	if got := c.line(); got != "200" {
		t.Fatalf("not shown: %s processes", got)
	}
	if seen := len(marked(marker)); seen != 201 {
		t.Errorf("not shown: the host sees %d", seen)
	}
	c.Signal(int(unix.SIGTERM), true) // which they ignore
	start := time.Now()
	c.Kill()
	ended(t, c, marker)
	t.Logf("201 processes ended within %v", time.Since(start))
}

// A released sandbox ends what still runs in it and frees its cgroups.
func TestReleaseFreesAll(t *testing.T) {
	h := startHelper(t)
	other := h.prepare(h.plan(workspace(t)))
	kept := h.groups()
	marker := fmt.Sprintf("marker-%d-released", os.Getpid())
	b := h.prepare(h.plan(workspace(t)))
	c := b.stubbornly(marker)
	waiting := b.cell(true)
	if layers(b.receipt, "cgroup: memory limit") && len(h.groups()) <= len(kept) {
		t.Errorf("not shown: no cgroup was made: %q", h.groups())
	}
	if err := h.Release(t.Context(), b.plan.ID); err != nil {
		t.Error(err)
	}
	ended(t, c, marker)
	waiting.Gone()
	if got := h.groups(); len(got) != len(kept) {
		t.Errorf("cgroups %q, before %q", got, kept)
	}
	if mounts := read(t, "/proc/"+pid(h)+"/mountinfo"); strings.Contains(mounts, b.plan.ID+"/") || strings.Contains(mounts, b.plan.ID+" ") {
		t.Errorf("a mount is left in the helper: %s", mounts)
	}
	for {
		if _, err := c.Next(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Release(t.Context(), b.plan.ID); err != nil {
		t.Errorf("twice is no error: %v", err)
	}
	other.says("works\n", "echo works")
}

// factory is the pid of the only sandbox's PID 1.
func (h *helper) factory() int {
	h.t.Helper()
	var found []int
	for _, line := range marked("\x00factory") {
		var n int
		fmt.Sscanf(line, "/proc/%d/", &n)
		if stat := strings.Fields(read(h.t, fmt.Sprintf("/proc/%d/stat", n))); len(stat) > 3 && stat[3] == pid(h) {
			found = append(found, n)
		}
	}
	if len(found) != 1 {
		h.t.Fatalf("factories of helper %s: %v", pid(h), found)
	}
	return found[0]
}

// A factory that dies takes its cells with it; the helper goes on.
func TestFactoryKilled(t *testing.T) {
	h := startHelper(t)
	marker := fmt.Sprintf("marker-%d-factory", os.Getpid())
	b := h.prepare(h.plan(workspace(t)))
	c := b.stubbornly(marker)
	unix.Kill(h.factory(), unix.SIGKILL)
	ended(t, c, marker)
	var f *sandbox.Failure
	if _, err := h.Cell(t.Context(), b.plan.ID, sandbox.Wish{Writable: true}); !errors.As(err, &f) || f.Step != "factory" {
		t.Errorf("a cell of a dead sandbox: %v", err)
	}
	if err := h.Release(t.Context(), b.plan.ID); err != nil {
		t.Error(err)
	}
	h.prepare(h.plan(workspace(t))).says("works\n", "echo works")
}

// When the gateway is gone the sandbox ends, although runner and helper are there.
func TestGatewayGone(t *testing.T) {
	h := startHelper(t)
	marker := fmt.Sprintf("marker-%d-gateway", os.Getpid())
	c := h.prepare(h.plan(workspace(t))).stubbornly(marker)
	h.lifeline.Close()
	ended(t, c, marker)
}

// A runner that is gone ends the helper and all below it.
func TestRunnerGone(t *testing.T) {
	h := startHelper(t)
	marker := fmt.Sprintf("marker-%d-runner", os.Getpid())
	c := h.prepare(h.plan(workspace(t))).stubbornly(marker)
	h.Helper.Close()
	h.await(h.gone)
	ended(t, c, marker)
	h.await(h.Done())
}

// A helper may be killed at any moment; what it was making ends, and nothing but
// empty cgroups is left, which the runner removes.
func TestHelperKilledAtAnyMoment(t *testing.T) {
	const rounds = 50
	h := startHelper(t)
	start := time.Now()
	h.prepare(h.plan(workspace(t)))
	whole := time.Since(start)
	h.Helper.Close()
	h.end()
	dir := workspace(t)
	r := rand.New(rand.NewPCG(7, 8))
	reached := map[string]int{}
	for i := range rounds {
		marker := fmt.Sprintf("marker-%d-%d-killed", os.Getpid(), i)
		p := launchHelper(t)
		stage := p.work(p.plan(dir), marker, time.Duration(r.Int64N(int64(whole)*5/4)))
		reached[stage]++
		reap(t)
		if left := marked(marker); len(left) > 0 {
			t.Fatalf("killed while it was to %s: %q", stage, left)
		}
		if err := sandbox.RemoveGroups((sandbox.Host{}).Groups(), p.prefix); err != nil {
			t.Errorf("killed while it was to %s: %v", stage, err)
		}
		p.leftovers()
	}
	t.Logf("%d helpers were killed while they were to: %v", rounds, reached)
	if reached["prepare"] < rounds/5 {
		t.Errorf("not shown: too few moments")
	}
}

// work drives a helper until it is killed after that time, and returns what it was
// being asked for.
func (p *program) work(plan sandbox.Plan, marker string, after time.Duration) (stage string) {
	p.t.Helper()
	p.once.Do(func() {}) // this test looks at the end itself
	client, err := sandbox.NewHelper(p.socket)
	if err != nil {
		p.t.Fatal(err)
	}
	defer client.Close()
	kill := time.AfterFunc(after, func() { p.cmd.Process.Kill() })
	defer kill.Stop()
	h := &helper{program: p, Helper: client}
	b, err := h.try(plan)
	if stage = "prepare"; err == nil {
		stage, err = b.lives(marker)
	}
	var f *sandbox.Failure
	if errors.As(err, &f) || err != nil && !errors.Is(err, sandbox.ErrHelperLost) {
		p.t.Errorf("to %s: %v", stage, err)
	}
	p.await(p.gone)
	p.lifeline.Close()
	return stage
}

// lives makes a cell and runs a command in it for as long as the helper is there.
func (b box) lives(marker string) (stage string, err error) {
	c, err := b.Cell(b.t.Context(), b.plan.ID, sandbox.Wish{Writable: true})
	if err != nil {
		return "make a cell", err
	}
	defer c.Close()
	var f *sandbox.Failure
	if _, err := b.launch(c, []string{"sh", "-c", stubborn, "sh", marker}); errors.As(err, &f) {
		b.t.Error(err) // it either runs or is gone
	}
	b.await(b.gone)
	c.Gone()
	return "go on", nil
}
