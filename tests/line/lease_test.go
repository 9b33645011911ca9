package line_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// holding starts a command that holds the lease until it is ended.
func (s *session) holding() string {
	s.t.Helper()
	return s.started("sleep", "300")
}

// busy wants an exec to be refused with what holder says.
func (s *session) busy(holder fields) answer {
	s.t.Helper()
	a := s.exec("true").refused(s.t, "WORKSPACE_BUSY")
	a.wants(s.t, fields{"retryable": true, "process_id": nil})
	a.below("details").below("holder").wants(s.t, holder)
	return a
}

func TestSecondWriterIsToldWhoHoldsTheLease(t *testing.T) {
	s := start(t, workspace(t))
	before := time.Now().Add(-time.Millisecond)
	id := s.holding()
	after := time.Now()
	a := s.busy(fields{"kind": "exec", "process_id": id, "pid": s.cmd.Process.Pid})
	if since := moment(t, a.below("details").below("holder"), "since"); since.Before(before) || since.After(after) {
		t.Errorf("held since %v; it was started between %v and %v", since, before, after)
	}
	s.terminate(id)
	s.exited(id)
	s.says("true")
}

func TestLeaseIsFreeOnceExitedIsShown(t *testing.T) {
	s := start(t, workspace(t))
	for i := range 51 {
		a := s.exec("true")
		if a.isError {
			t.Fatalf("%d: after exited was shown: %v", i, a.fields)
		}
		for s.status(a.text("process_id")).text("state") != "exited" {
			// No wait between the answer and the next exec: that is the promise.
		}
	}
}

func TestTwoServersOfOneWorkspace(t *testing.T) {
	dir := workspace(t)
	one, two := start(t, dir), start(t, dir)
	id := one.holding()
	two.busy(fields{"kind": "exec", "process_id": id, "pid": one.cmd.Process.Pid})
	one.terminate(id)
	one.exited(id)
	id = two.holding()
	one.busy(fields{"kind": "exec", "process_id": id, "pid": two.cmd.Process.Pid})
	two.close() // its end frees what it held
	eventually(t, soon, "the lease is free", func() bool { return !one.exec("true").isError })
}

// A lease is the directory's, whatever name it is reached by.
func TestLeaseByAnotherName(t *testing.T) {
	dir := workspace(t)
	link := dir + "-link"
	must(t, syscall.Symlink(dir, link))
	s := start(t, dir)
	id := s.holding()
	r := run(t, link, "--no-wait", "--", "true").wants(t, 125)
	if !strings.Contains(r.stderr, "WORKSPACE_BUSY") || !strings.Contains(r.stderr, fmt.Sprint(s.cmd.Process.Pid)) {
		t.Errorf("stderr %q", r.stderr)
	}
	s.terminate(id)
	s.exited(id)
}

func TestTwentyRunsAtOnce(t *testing.T) {
	dir := workspace(t)
	const n = 20
	runs := make([]*live, n)
	for i := range runs {
		// mkdir fails where another is inside.
		line := fmt.Sprintf("mkdir busy && sleep 0.02 && echo %d >> lines && rmdir busy", i)
		runs[i] = background(t, command(t, dir, append([]string{"--"}, shell(line)...)...))
	}
	for _, r := range runs {
		r.end().wants(t, 0)
	}
	seen := map[string]int{}
	for _, line := range strings.Fields(contents(t, dir+"/lines")) {
		seen[line]++
	}
	for i := range n {
		if seen[fmt.Sprint(i)] != 1 {
			t.Errorf("run %d wrote %d lines", i, seen[fmt.Sprint(i)])
		}
	}
}

func TestRunWaitsNoLongerThanItMay(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	id := s.holding()
	began := time.Now()
	r := run(t, dir, "--timeout", "1500ms", "--", "touch", "made").wants(t, 125)
	if took := time.Since(began); took < 1500*time.Millisecond || took > 10*time.Second {
		t.Errorf("it waited %v", took)
	}
	if !strings.Contains(r.stderr, "waiting for another command") || !strings.Contains(r.stderr, "WORKSPACE_BUSY") {
		t.Errorf("stderr %q", r.stderr)
	}
	waiting := background(t, command(t, dir, "--", "touch", "made"))
	eventually(t, soon, "it says that it waits", func() bool { return strings.Contains(waiting.stderr.String(), "waiting for another") })
	must(t, waiting.cmd.Process.Signal(syscall.SIGINT))
	waiting.end().wants(t, 130)
	if !absent(dir + "/made") {
		t.Error("a command that was given up ran")
	}
	s.terminate(id)
	s.exited(id)
}
