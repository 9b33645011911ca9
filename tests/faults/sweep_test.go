package faults_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestStartsSweepTheDeadAlone starts many codespaces at once beside a dead one and
// a living one.
func TestStartsSweepTheDeadAlone(t *testing.T) {
	const starts = 20
	dead := killedWhole(t)
	living := newPlace(t).mcp(t)
	m := mark()
	living.running(t, m)
	kept := footprintOf(living.pid())
	before := len(kept.left())

	var all sync.WaitGroup
	runs := make([]*program, starts)
	for i := range runs {
		runs[i] = start(t, newPlace(t).codespace("run", "--", "sh", "-c", "echo works; exit 3"))
	}
	for _, r := range runs {
		all.Go(func() { r.wait(t, 2*answerLimit) })
	}
	all.Wait()
	fine := 0
	for _, r := range runs {
		if r.status() == 3 && r.stdout.String() == "works\n" {
			fine++
			continue
		}
		t.Errorf("codespace run: exit %d, %q, %q", r.status(), r.stdout.String(), r.stderr.String())
	}
	t.Logf("%d of %d starts beside a dead instance worked", fine, starts)
	dead.wantNothingLeft(t)
	if after := len(kept.left()); after != before || len(marked(m)) != 2 {
		t.Errorf("a living instance had %d things and has %d; its command has %d processes of 2", before, after, len(marked(m)))
	}
	living.end(t)
	wantNobodyBut(t)
	kept.wantNothingLeft(t)
}

// killedWhole kills every process of a codespace at once, so that nothing of it can
// clean up, and returns what is left of it.
func killedWhole(t *testing.T) footprint {
	t.Helper()
	s := newPlace(t).mcp(t)
	s.running(t, mark())
	f, a := footprintOf(s.pid()), s.whole(t)
	for _, pid := range a[:factory] {
		stop(t, pid)
	}
	for _, pid := range a[:factory] { // the others end with these
		kill(t, pid, false)
	}
	wantNobodyBut(t)
	if _, err := os.Stat(filepath.Join(f.instance, "lock")); err != nil || os.Geteuid() == 0 && len(groupsOf(f.instance)) == 0 {
		t.Fatalf("control: nothing of a dead instance is left to sweep: %v", f.left())
	}
	return f
}
