package line_test

import (
	"strings"
	"testing"
	"time"
)

const grace = 2 * time.Second // unless the operator says otherwise

func TestDaemonDoesNotSurvive(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	m := marker()
	id := s.started(shell("(setsid sh -c 'sleep " + m + " & sleep 300' &) & wait; echo up; until [ -e go ]; do sleep 0.01; done; echo over")...)
	s.until(id, "up\n")
	appears(t, m) // while its command runs it is there
	began := time.Now()
	write(t, dir, map[string]string{"go": ""})
	if out := string(s.output(id, 0)); out != "up\nover\n" {
		t.Errorf("output %q", out)
	}
	st := s.exited(id)
	if left := sleepers(t, m); len(left) > 0 {
		t.Errorf("shown as exited while %v still run", left)
	}
	st.wants(t, fields{"termination": "exited", "exit_code": 0, "eof": true})
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the daemon held the end back for %v", took)
	}
}

func TestTerminateIgnored(t *testing.T) {
	s := start(t, workspace(t))
	m := marker()
	id := s.started(shell("trap '' TERM; echo up; (trap '' TERM; exec sleep " + m + ")")...)
	s.until(id, "up\n")
	appears(t, m)
	began := time.Now()
	s.terminate(id)
	st := s.exited(id)
	took := time.Since(began)
	if left := sleepers(t, m); len(left) > 0 {
		t.Errorf("shown as exited while %v still run", left)
	}
	st.wants(t, fields{"termination": "terminated", "exit_code": nil, "signal": "SIGKILL"})
	if took < grace || took > grace+2*time.Second {
		t.Errorf("it ended after %v, with a grace of %v", took, grace)
	}
}

// A command that heeds TERM has its grace to put things in order, and says how.
func TestTerminateHeeded(t *testing.T) {
	s := start(t, workspace(t))
	id := s.started(shell("trap 'echo tidy; exit 9' TERM; echo up; while :; do sleep 0.02; done")...)
	s.until(id, "up\n")
	began := time.Now()
	s.terminate(id)
	s.exited(id).wants(t, fields{"termination": "terminated", "exit_code": 9, "signal": nil})
	if took := time.Since(began); took >= grace {
		t.Errorf("it took %v", took)
	}
	// The shell may also say that what it waited for was terminated.
	if out := string(s.output(id, 0)); !strings.HasPrefix(out, "up\n") || !strings.HasSuffix(out, "tidy\n") {
		t.Errorf("output %q", out)
	}
}

func TestDeathBySignal(t *testing.T) {
	s := start(t, workspace(t))
	for _, name := range []string{"SEGV", "KILL", "TERM", "ABRT", "USR1"} {
		st, out := s.run(shell("echo before; kill -" + name + " $$; sleep 60")...)
		st.wants(t, fields{"termination": "signaled", "signal": "SIG" + name, "exit_code": nil})
		if out != "before\n" {
			t.Errorf("%s: output %q", name, out)
		}
	}
}

// Standard input is an open pipe: who reads it waits, here for the time limit.
func TestTimeLimit(t *testing.T) {
	s := start(t, workspace(t), "--timeout", "1s")
	began := time.Now()
	st, out := s.run(shell("echo before; exec cat")...)
	st.wants(t, fields{"termination": "timeout", "exit_code": nil, "signal": "SIGTERM"})
	if out != "before\n" {
		t.Errorf("output %q", out)
	}
	if took := time.Since(began); took < time.Second || took > time.Second+grace+2*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestNoTimeLimit(t *testing.T) {
	s := start(t, workspace(t), "--timeout", "0")
	s.call("workspace_info", map[string]any{"workspace_id": s.workspace}).below("execution").below("limits").wants(t, fields{"wall_ms": 0})
	st, _ := s.run(shell("sleep 1.2; exit 3")...)
	st.wants(t, fields{"termination": "exited", "exit_code": 3})
}
