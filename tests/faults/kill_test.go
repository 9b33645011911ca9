package faults_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

// kill ends a process with SIGKILL, if frozen with SIGSTOP first, and waits until
// it is gone.
func kill(t testing.TB, pid int, frozen bool) {
	t.Helper()
	if frozen {
		stop(t, pid)
	}
	signal(t, pid, unix.SIGKILL)
	wantGone(t, pid)
}

// TestKilledWhileCommandRuns kills each process of the line under a command that
// has a background child.
func TestKilledWhileCommandRuns(t *testing.T) {
	for role := range roles {
		for _, frozen := range []bool{false, true} {
			t.Run(caseName(role, frozen), func(t *testing.T) {
				p := newPlace(t)
				s := p.mcp(t)
				m := mark()
				id := s.started(t, "sh", "-c", "echo started; sleep "+m+" & sleep "+m)
				wantMarked(t, m, 2)
				f, a := footprintOf(s.pid()), s.whole(t)
				f.wantSomething(t)
				kill(t, a[role], frozen)
				wantNoneMarked(t, m)
				wantNobodyBut(t, a.outside(role)...)
				p.wantRecovered(t, s, role, f, id)
			})
		}
	}
}

func caseName(role int, frozen bool) string {
	if frozen {
		return roleNames[role] + " stopped, then killed"
	}
	return roleNames[role] + " killed"
}

// wantRecovered asks what the contract promises after the loss of a role, of the
// command that ran and of the next one.
func (p place) wantRecovered(t testing.TB, s *session, role int, f footprint, id string) {
	t.Helper()
	if role != gateway {
		p.wantToldTruth(t, s, role, id)
	}
	p.wantNextWorks(t, s, role, f)
}

// wantToldTruth wants no invented status of a command that was lost.
func (p place) wantToldTruth(t testing.TB, s *session, role int, id string) {
	t.Helper()
	if role == runner {
		var r result
		if !within(promised, func() bool { r = s.status(t, id); return r.code() != "RUNNER_UNAVAILABLE" }) || r.code() != "PROCESS_NOT_FOUND" {
			t.Errorf("status of a command whose runner is gone: %v", r)
		}
		return
	}
	r := s.exited(t, id, promised)
	if _, known := r.fields["exit_code"]; known || r.text("termination") != "lost" {
		t.Errorf("status of a command whose %s is gone: %v", roleNames[role], r)
	}
}

// wantRunWorks runs a command in the workspace of a codespace that is dead.
func (p place) wantRunWorks(t testing.TB) {
	t.Helper()
	r := p.run(t, "sh", "-c", "echo works; exit 3")
	if r.status() != 3 || r.stdout.String() != "works\n" {
		t.Errorf("codespace run after the fault: exit %d, %q, %q", r.status(), r.stdout.String(), r.stderr.String())
	}
}
