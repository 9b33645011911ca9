package faults_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestStoppedRunnerIsEnded stops a runner. It cannot end its subtree by itself, so
// the gateway has to, and who waits has to be told.
func TestStoppedRunnerIsEnded(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := p.mcp(t)
	m := mark()
	id := s.started(t, "sh", "-c", "echo started; sleep "+m+" & sleep "+m)
	wantMarked(t, m, 2)
	f, a := footprintOf(s.pid()), s.whole(t)
	stop(t, a[runner])
	began := time.Now()
	r := s.output(t, id, len("started\n"))
	if took := time.Since(began); took > 15*time.Second || r.code() != "RUNNER_UNAVAILABLE" {
		t.Errorf("a waiting read was answered after %v: %v", took, r)
	}
	wantNoneMarked(t, m)
	wantGone(t, a[runner:]...)
	p.wantToldTruth(t, s, runner, id)
	s.works(t)
	s.end(t)
	f.wantNothingLeft(t)
}

// TestStoppedBuilderIsReplaced stops what makes cells. Commands that run must not
// notice; the next one is refused in bounded time, and then there is a new sandbox.
func TestStoppedBuilderIsReplaced(t *testing.T) {
	t.Parallel() // as its cases: each waits for the time-out of a cell
	for name, stopped := range map[string][]int{"helper": {helper}, "factory": {factory}, "both": {helper, factory}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			builderStopped(t, newPlace(t), stopped)
		})
	}
}

func builderStopped(t *testing.T, p place, stopped []int) {
	s := p.mcp(t)
	m := mark()
	id := s.started(t, "sh", "-c", "echo started; trap 'echo told; exit 3' TERM; sleep "+m+" & while sleep 0.1; do echo more; done")
	f, a := footprintOf(s.pid()), s.whole(t)
	for _, role := range stopped {
		stop(t, a[role])
	}
	from := int(s.status(t, id).fields["output_total"].(float64))
	if r := s.output(t, id, from); r.text("chunk") == "" {
		t.Errorf("no output while %v is stopped: %v", stopped, r)
	}
	if r := s.status(t, id); r.text("state") != "running" {
		t.Errorf("a command does not run while %v is stopped: %v", stopped, r)
	}
	s.call(t, "terminate_process", map[string]any{"process_id": id})
	if r := s.exited(t, id, 5*time.Second); r.text("termination") != "terminated" || r.fields["exit_code"] != 3.0 {
		t.Errorf("a command terminated while %v is stopped: %v", stopped, r)
	}
	wantNoneMarked(t, m)
	r, took := s.untilNoticed(t)
	if took > 30*time.Second || r.code() != "SANDBOX_UNAVAILABLE" && r.text("dispatch_status") != "confirmed" {
		t.Errorf("a command while %v is stopped was answered after %v: %v", stopped, took, r)
	}
	s.works(t)
	s.end(t)
	wantGone(t, a[:]...)
	f.wantNothingLeft(t)
}

// TestStoppedFactoryLeavesOtherWorkspacesAlone stops what makes the cells of one
// workspace. What runs in another goes on, and it gets new commands meanwhile.
func TestStoppedFactoryLeavesOtherWorkspacesAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	dir := filepath.Dir(p.workspace)
	other, file := filepath.Join(dir, "other"), filepath.Join(dir, "codespace.toml")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("[state]\ndir = %q\n", p.state)
	for id, root := range map[string]string{"one": p.workspace, "other": other} {
		config += fmt.Sprintf("[workspaces.%s]\nroot = %q\nprofile = \"workspace-write\"\nlimits.enforcement = \"best-effort\"\n", id, root)
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := p.session(t, exec.Command(filepath.Join(p.bin, "codespace"), "mcp", "--config", file))
	ids := s.greet(t)
	if len(ids) != 2 {
		t.Fatalf("workspaces: %v", ids)
	}
	s.started(t, "sh", "-c", "echo started")
	f, a := footprintOf(s.pid()), anatomyOf(s.pid())
	s.workspace = ids[1]
	id := s.started(t, "sh", "-c", "echo started; while [ ! -e go ]; do sleep 0.05; done; exit 3")
	stop(t, a[factory])
	s.workspace = ids[0]
	s.untilNoticed(t)
	s.works(t)
	s.workspace = ids[1]
	if r := s.status(t, id); r.text("state") != "running" {
		t.Errorf("the command of another workspace: %v", r)
	}
	touch(t, filepath.Join(other, "go"))
	if r := s.exited(t, id, 5*time.Second); r.fields["exit_code"] != 3.0 {
		t.Errorf("the command of another workspace ended as %v", r)
	}
	s.works(t)
	s.end(t)
	wantGone(t, a[:cell]...)
	f.wantNothingLeft(t)
}

// untilNoticed starts commands until the cells that were prepared are used up, and
// returns the answer to the first that needed another, which shows in the time.
func (s *session) untilNoticed(t *testing.T) (result, time.Duration) {
	for range 20 {
		began := time.Now()
		r := s.await(t, s.begin("true"))
		if took := time.Since(began); r.failed || r.gone || took > 10*time.Second {
			return r, took
		}
		s.exited(t, r.text("process_id"), 5*time.Second)
	}
	t.Error("control: nobody needs what is stopped")
	return result{gone: true}, 0
}

// TestStoppedCellIsTerminated stops PID 1 of a command: it cannot pass on TERM or
// KILL, and its tree must end all the same.
func TestStoppedCellIsTerminated(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := p.mcp(t)
	m := mark()
	id := s.started(t, "sh", "-c", "echo started; sleep "+m+" & sleep "+m)
	wantMarked(t, m, 2)
	stop(t, s.whole(t)[cell])
	s.call(t, "terminate_process", map[string]any{"process_id": id})
	r := s.exited(t, id, 10*time.Second)
	if _, known := r.fields["exit_code"]; known || r.text("termination") != "terminated" {
		t.Errorf("status of a command whose PID 1 was stopped: %v", r)
	}
	wantNoneMarked(t, m)
	s.works(t)
}

// TestStoppedAndContinuedLosesNothing stops and continues each process: the session
// goes on and the command ends as itself.
func TestStoppedAndContinuedLosesNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := p.mcp(t)
	id := s.started(t, "sh", "-c", "echo started; while [ ! -e go ]; do sleep 0.05; done; exit 3")
	a := s.whole(t)
	for _, pid := range a {
		stop(t, pid)
	}
	await(time.Second)
	for _, pid := range a {
		signal(t, pid, unix.SIGCONT)
	}
	touch(t, p.file("go"))
	if r := s.exited(t, id, 5*time.Second); r.text("termination") != "exited" || r.fields["exit_code"] != 3.0 {
		t.Errorf("status of a command after all were stopped and continued: %v", r)
	}
	s.works(t)
}
