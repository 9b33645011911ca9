package runner

import (
	"testing"
	"time"

	"codespace/policy"
	"codespace/sandbox"

	"golang.org/x/sys/unix"
)

func limits() policy.Limits {
	return policy.Limits{Wall: time.Minute, Grace: time.Second, Memory: 1 << 30, PIDs: 10, Processes: 2, Output: 1 << 10, OpenFiles: 64}
}

const (
	exit0   = unix.WaitStatus(0)
	exit7   = unix.WaitStatus(7 << 8)
	exit137 = unix.WaitStatus(137 << 8)
	sigkill = unix.WaitStatus(9)
	sigsegv = unix.WaitStatus(11)
)

// TestVerdictInventsNothing is the table of ends: what PID 1 told, what the
// kernel counted, why we ended it, and what is said of that.
func TestVerdictInventsNothing(t *testing.T) {
	told := func(s unix.WaitStatus) *sandbox.Event { return &sandbox.Event{Status: s} }
	code := func(n int) *int { return &n }
	cases := []struct {
		name   string
		exited *sandbox.Event
		why    Termination
		oom    int64
		want   Termination
		code   *int
		signal string
	}{
		{"exit 0", told(exit0), "", 0, ByExit, code(0), ""},
		{"exit 7", told(exit7), "", 0, ByExit, code(7), ""},
		{"segmentation fault", told(sigsegv), "", 0, BySignal, nil, "SIGSEGV"},
		{"killed by its own", told(sigkill), "", 0, BySignal, nil, "SIGKILL"},
		{"nothing told", nil, "", 0, Lost, nil, ""},
		{"time limit, obeyed", told(exit0), ByTimeout, 0, ByTimeout, code(0), ""},
		{"time limit, killed", told(sigkill), ByTimeout, 0, ByTimeout, nil, "SIGKILL"},
		{"time limit, nothing told", nil, ByTimeout, 0, ByTimeout, nil, ""},
		{"terminated", told(unix.WaitStatus(15)), ByTerminate, 0, ByTerminate, nil, "SIGTERM"},
		{"out of memory", told(sigkill), "", 1, ByOOM, nil, "SIGKILL"},
		{"out of memory in a shell's child", told(exit137), "", 1, ByOOM, code(137), ""},
		{"out of memory, PID 1 too", nil, "", 1, ByOOM, nil, ""},
		{"a child was out of memory and the command coped", told(exit0), "", 1, ByExit, code(0), ""},
		{"out of memory while being ended", told(sigkill), ByTerminate, 1, ByTerminate, nil, "SIGKILL"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := watch{process: newProcess(ExecRequest{}, limits()), exited: c.exited, reason: c.why}
			s := w.verdict(sandbox.Spent{OOMKills: c.oom})
			if s.State != Exited || s.Termination != c.want || s.Signal != c.signal || s.Ended.IsZero() {
				t.Errorf("got state %s termination %s signal %q, want %s %q", s.State, s.Termination, s.Signal, c.want, c.signal)
			}
			if (s.ExitCode == nil) != (c.code == nil) || c.code != nil && *s.ExitCode != *c.code {
				t.Errorf("exit code %v, want %v", s.ExitCode, c.code)
			}
		})
	}
}

func TestUsageTakesTheLargerMemoryAndTheLastCPU(t *testing.T) {
	w := watch{process: newProcess(ExecRequest{}, limits()),
		exited: &sandbox.Event{CPU: time.Second, MaxRSS: 10}, last: sandbox.Event{Empty: true, CPU: 3 * time.Second, MaxRSS: 30}}
	s := w.verdict(sandbox.Spent{CPU: time.Hour, PeakMemory: 20, PeakPIDs: 4})
	if want := (Usage{CPU: 3 * time.Second, PeakMemory: 30, PIDs: 3}); s.Usage != want {
		t.Errorf("usage %+v, want %+v", s.Usage, want)
	}
}

func TestSpawnFaultNamesTheReason(t *testing.T) {
	for reason, advice := range spawnAdvice {
		f := faultOf(&sandbox.Failure{Step: "exec", Errno: 2, Reason: reason, Launch: true}, []string{"./prog"})
		fault, ok := f.(*Fault)
		if !ok || fault.Code != ProcessSpawnFailed || fault.Message != `cannot start "./prog": `+reason || fault.Next != advice {
			t.Errorf("%s: %v", reason, f)
		}
	}
}

func TestSandboxFaultNamesStepAndKnob(t *testing.T) {
	f, ok := faultOf(&sandbox.Failure{Step: "user namespace", Errno: int(unix.ENOSPC)}, []string{"x"}).(*Fault)
	if !ok || f.Code != SandboxUnavailable || f.Details["step"] != "user namespace" || f.Details["knob"] != "user.max_user_namespaces" {
		t.Errorf("got %+v", f)
	}
}
