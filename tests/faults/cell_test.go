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

// recordCell returns how often each call is made while a cell is made: by the
// factory, and by the cell until it says that it is ready.
func recordCell(t testing.TB, s *session) map[string]int {
	t.Helper()
	log := filepath.Join(t.TempDir(), "calls")
	release := attach(t, anatomyOf(s.pid())[factory], []string{"-f", "-o", log})
	s.exited(t, s.exec(t, "true"), injectLimit)
	release()
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(b), " ") // the factory
	calls, ready := map[string]int{}, false
	for line := range strings.Lines(string(b)) {
		pid, text, _ := strings.Cut(line, " ")
		call, _, isCall := strings.Cut(strings.TrimSpace(text), "(")
		if !isCall || strings.HasPrefix(call, "<") || slices.Contains(unfailing, call) || pid != first && ready {
			continue
		}
		calls[call]++
		ready = ready || pid != first && call == "sendmsg"
	}
	return calls
}

// TestCellSetupFails makes each call by which a cell is made fail, one at a time.
func TestCellSetupFails(t *testing.T) {
	need.Root(t) // a factory is not dumpable: its own user may not trace it
	p := newPlace(t)
	s := p.mcp(t)
	s.works(t)
	s.exited(t, s.exec(t, "sh", "-c", evidence), injectLimit)
	control := p.takeEvidence(t)
	if !strings.Contains(control, "Seccomp:\t2") {
		t.Fatalf("control: %q", control)
	}
	faults := faultsOf(recordCell(t, s), 3, "error=EPERM")
	c := closed{faults: len(faults)}
	for _, f := range faults {
		t.Run(f.String(), func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			release := attach(t, anatomyOf(s.pid())[factory], f.strace(log))
			said := s.outcomeOf(t, s.await(t, s.begin("sh", "-c", evidence)))
			release()
			if injected(t, log) {
				c.hit++
			}
			c.judge(t, p.takeEvidence(t), control, said)
			s.works(t)
			wantNobodyBut(t, append(anatomyOf(s.pid()).outside(cell), s.pid())...)
		})
	}
	t.Log(c.String())
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
	if r.text("termination") == "exited" && r.fields["exit_code"] == 0.0 {
		return succeeded
	}
	return outcome(r.String())
}
