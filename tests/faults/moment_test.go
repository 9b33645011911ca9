package faults_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// TestKilledBeforeFirstCommand kills a gateway that has no runner yet.
func TestKilledBeforeFirstCommand(t *testing.T) {
	p := newPlace(t)
	s := p.mcp(t)
	f, a := footprintOf(s.pid()), anatomyOf(s.pid())
	if f.instance == "" || a[runner] != 0 {
		t.Fatalf("control: %v, %v", f, a)
	}
	kill(t, a[gateway], false)
	wantNobodyBut(t)
	p.wantRunWorks(t)
	f.wantNothingLeft(t)
}

// TestKilledWhileSandboxIsBuilt kills a process while the first process of a new
// sandbox is on its way to become the factory, a little later each time.
func TestKilledWhileSandboxIsBuilt(t *testing.T) {
	steps := share(6)
	survived, early := 0, 0
	for i := range factory * steps {
		role, delay := i%factory, time.Duration(i/factory)*2*time.Millisecond
		ok := t.Run(fmt.Sprint(caseName(role, false), " after ", delay), func(t *testing.T) {
			if newPlace(t).killedInBuild(t, role, delay) {
				early++
			}
		})
		if ok {
			survived++
		}
	}
	for range 10 { // a busy machine may have been too slow for all of them
		if early > 0 || t.Failed() {
			break
		}
		if newPlace(t).killedInBuild(t, helper, 0) {
			early++
		}
	}
	t.Logf("%d of %d survived; %d were killed before the factory was there", survived, factory*steps, early)
	if early == 0 {
		t.Error("control: none of these came early enough")
	}
}

// killedInBuild tells whether the kill came before the sandbox was built.
func (p place) killedInBuild(t *testing.T, role int, delay time.Duration) bool {
	s := p.mcp(t)
	answer := s.begin("sh", "-c", "touch ran")
	if !within(answerLimit, func() bool { return building(s.pid()) }) {
		t.Fatalf("control: no sandbox is being built: %v", below(s.pid()))
	}
	await(delay)
	f, a := footprintOf(s.pid()), anatomyOf(s.pid())
	kill(t, a[role], false)
	s.await(t, answer)
	if role == gateway {
		wantNobodyBut(t)
	}
	p.wantNextWorks(t, s, role, f)
	return a[factory] == 0
}

// building tells whether the first process of a sandbox is there.
func building(pid int) bool {
	return slices.ContainsFunc(below(pid), func(p process) bool {
		return slices.Contains(p.args, "init") || slices.Contains(p.args, "factory")
	})
}

// TestKilledWhileOutputDrains kills each process after a command has exited while
// its background child holds its output.
func TestKilledWhileOutputDrains(t *testing.T) {
	for role := range roles {
		t.Run(caseName(role, false), func(t *testing.T) {
			p := newPlace(t)
			s := p.mcp(t)
			m := mark()
			id, f, a := p.draining(t, s, m)
			kill(t, a[role], false)
			wantNoneMarked(t, m)
			wantNobodyBut(t, a.outside(role)...)
			if role > runner { // the exit was reported before, or it is not known
				r := s.exited(t, id, promised)
				code, known := r.fields["exit_code"]
				if how := r.text("termination"); known != (how == "exited") || known && code != 3.0 || how != "exited" && how != "lost" {
					t.Errorf("status of a command that exited with 3: %v", r)
				}
			}
			p.wantNextWorks(t, s, role, f)
		})
	}
}

// draining returns while a command that has exited is still being read from. That
// does not last: on a busy machine it may take some tries to see it.
func (p place) draining(t *testing.T, s *session, m string) (string, footprint, anatomy) {
	t.Helper()
	for range 5 {
		id := s.started(t, "sh", "-c", "sleep "+m+" & echo started; while [ ! -e go ]; do sleep 0.01; done; exit 3")
		f, a := footprintOf(s.pid()), s.whole(t)
		command := below(a[cell])[0].pid
		wantMarked(t, m, 1)
		holder := marked(m)[0].pid
		touch(t, p.file("go"))
		if within(promised, func() bool { return !running(command) }) && running(holder) {
			return id, f, a
		}
		s.exited(t, id, promised)
		if err := os.Remove(p.file("go")); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("control: nothing holds the output of a command that has exited")
	return "", footprint{}, anatomy{}
}

// TestKilledAfterExit kills each process that is left after a command. What was
// known of the command stays known while its runner lives.
func TestKilledAfterExit(t *testing.T) {
	for role := range cell {
		t.Run(caseName(role, false), func(t *testing.T) {
			p := newPlace(t)
			s := p.mcp(t)
			id := s.started(t, "sh", "-c", "echo started; exit 3")
			s.exited(t, id, promised)
			f, a := footprintOf(s.pid()), anatomyOf(s.pid())
			kill(t, a[role], false)
			wantNobodyBut(t, a.outside(role)...)
			if role > runner {
				if r := s.status(t, id); r.text("termination") != "exited" || r.fields["exit_code"] != 3.0 {
					t.Errorf("status of a command that exited with 3: %v", r)
				}
			}
			p.wantNextWorks(t, s, role, f)
		})
	}
}

// wantNextWorks wants the next command to work, in the same session unless its
// gateway was lost, and nothing left after that.
func (p place) wantNextWorks(t testing.TB, s *session, role int, f footprint) {
	t.Helper()
	if role == gateway {
		p.wantRunWorks(t)
	} else {
		s.works(t)
		s.end(t)
	}
	wantNobodyBut(t)
	f.wantNothingLeft(t)
}
