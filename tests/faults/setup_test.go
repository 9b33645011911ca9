package faults_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codespace/tests/need"
)

// setupCalls are the calls by which a sandbox is built, each with how often at most
// it is made to fail: in the helper, in what libcontainer starts, and beyond their
// number in a cell.
var setupCalls = map[string]int{
	"capset": 2, "clone3": 2, "close_range": 2, "fchownat": 1, "fsconfig": 2, "fsmount": 2, "fsopen": 2, "memfd_create": 1,
	"mkdirat": 2, "mount": 5, "mount_setattr": 3, "move_mount": 3, "open_tree": 3, "openat2": 2, "pidfd_open": 1, "pivot_root": 1,
	"prctl": 2, "seccomp": 2, "sethostname": 1, "setresuid": 1, "setsid": 2, "socketpair": 2, "umount2": 2, "unshare": 3,
}

// under runs codespace run under strace to its end.
func (p place) under(t testing.TB, f fault, argv ...string) (r *program, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "log")
	cmd := p.codespace("run", append([]string{"--"}, argv...)...)
	traced := exec.Command(need.Command(t, "strace"), append(f.strace(log), cmd.Args...)...)
	traced.Env = cmd.Env
	r = start(t, traced)
	r.wait(t, injectLimit)
	return r, log
}

// TestSandboxSetupFails makes each call by which a sandbox is built fail, one at a
// time, in every process that makes it so often.
func TestSandboxSetupFails(t *testing.T) {
	p := newPlace(t)
	p.run(t, "sh", "-c", evidence)
	control := p.takeEvidence(t)
	if !strings.Contains(control, "Seccomp:\t2") {
		t.Fatalf("control: %q", control)
	}
	faults := faultsOf(setupCalls, share(6), "error=EPERM", "error=ENOMEM")
	c := closed{faults: len(faults)}
	for _, f := range faults {
		t.Run(f.String(), func(t *testing.T) {
			r, log := p.under(t, f, "sh", "-c", evidence)
			if injected(t, log) {
				c.hit++
			}
			c.judge(t, p.takeEvidence(t), control, r.outcome())
			wantNobodyBut(t)
		})
	}
	t.Log(c.String())
}

// outcome is what codespace run said of its command.
func (p *program) outcome() outcome {
	switch code := p.status(); {
	case code == 0:
		return succeeded
	case code == 125 && strings.Contains(p.stderr.String(), "lost"):
		return lost
	case code == 125 || code == 126 || code == 127:
		return refused
	}
	return outcome(p.stderr.String())
}
