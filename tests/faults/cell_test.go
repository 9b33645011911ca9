package faults_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codespace/tests/need"
)

// unfailing are calls that the kernel does not let fail, or whose failure strace
// cannot stage: a close that is left out leaves a descriptor open.
var unfailing = []string{"close", "umask", "rt_sigaction", "rt_sigprocmask", "restart_syscall", "exit_group"}

// standing starts a session whose sandbox stands and holds no cell ready.
func (p place) standing(t testing.TB) *session {
	t.Helper()
	s := p.mcp(t)
	s.call(t, "workspace_info", map[string]any{"workspace_id": s.workspace})
	if a := anatomyOf(s.pid()); a[factory] == 0 || len(below(a[factory])) > 0 {
		t.Fatalf("control: no sandbox without cells: %v", below(s.pid()))
	}
	return s
}

// recordCell returns how often each call is made while a cell is made: by the
// factory, and by the cell until it says that it is ready.
func (p place) recordCell(t testing.TB) map[string]int {
	t.Helper()
	s := p.standing(t)
	log := filepath.Join(t.TempDir(), "calls")
	release := attach(t, anatomyOf(s.pid())[factory], []string{"-f", "-o", log})
	s.exited(t, s.exec(t, "true"), injectLimit)
	release()
	s.end(t)
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return callsOfFirstCell(string(b))
}

func callsOfFirstCell(log string) map[string]int {
	factoryPID, _, _ := strings.Cut(log, " ")
	calls, cellPID := map[string]int{}, ""
	for line := range strings.Lines(log) {
		pid, text, _ := strings.Cut(line, " ")
		call, _, isCall := strings.Cut(strings.TrimSpace(text), "(")
		if cellPID == "" && pid != factoryPID {
			cellPID = pid
		}
		if !isCall || strings.HasPrefix(call, "<") || slices.Contains(unfailing, call) || pid != factoryPID && pid != cellPID {
			continue
		}
		calls[call]++
		if pid == cellPID && call == "sendmsg" {
			break
		}
	}
	return calls
}

// TestCellSetupFails makes each call by which a cell is made fail, one at a time.
func TestCellSetupFails(t *testing.T) {
	need.Root(t) // a factory is not dumpable: its own user may not trace it
	p := newPlace(t)
	p.run(t, "sh", "-c", evidence)
	control := p.takeEvidence(t)
	if !strings.Contains(control, "Seccomp:\t2") {
		t.Fatalf("control: %q", control)
	}
	faults := faultsOf(p.recordCell(t), 2, "error=EPERM", "error=ENOMEM")
	c := closed{faults: len(faults)}
	for _, f := range faults {
		t.Run(f.String(), func(t *testing.T) {
			s := p.standing(t)
			log := filepath.Join(t.TempDir(), "log")
			release := attach(t, anatomyOf(s.pid())[factory], f.strace(log))
			said := s.outcomeOf(t, s.await(t, s.begin("sh", "-c", evidence)))
			release()
			if injected(t, log) {
				c.hit++
			}
			c.judge(t, p.takeEvidence(t), control, said)
			s.works(t)
			s.end(t)
			wantNobodyBut(t)
		})
	}
	t.Log(c.String())
	if c.hit < c.faults/2 {
		t.Error("control: most calls were not hit")
	}
}

// outcomeOf is how a command ended of which exec_command has said r.
func (s *session) outcomeOf(t testing.TB, r result) outcome {
	t.Helper()
	if r.code() == "SANDBOX_UNAVAILABLE" || r.code() == "PROCESS_SPAWN_FAILED" {
		return refused
	}
	if r.failed || r.gone {
		return outcome(r.String())
	}
	r = s.exited(t, r.text("process_id"), injectLimit)
	_, known := r.fields["exit_code"]
	switch {
	case r.text("termination") == "exited" && r.fields["exit_code"] == 0.0:
		return succeeded
	case r.text("termination") == "lost" && !known:
		return lost
	}
	return outcome(r.String())
}
