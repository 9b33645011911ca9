package faults_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// resumable makes that a program that is blocked at a failpoint goes on with resume,
// and exits at the end of the test.
func (p patchPlace) resumable(t testing.TB) (resume func()) {
	t.Helper()
	name := filepath.Join(p.bin, "failpoint.resume")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return func() {
		if _, err := f.Write([]byte{1}); err != nil {
			t.Error(err)
		}
	}
}

// patcher is the one patch helper that runs.
func patcher(t testing.TB) int {
	t.Helper()
	var found []process
	for _, p := range below(os.Getpid()) {
		if p.program() == "codespace-patch" && !p.zombie() {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		t.Fatalf("control: the patch helpers %v", found)
	}
	return found[0].pid
}

// blocked sends the patch and returns once its helper is blocked at a step.
func (p patchPlace) blocked(t testing.TB, at step) (*session, <-chan result) {
	t.Helper()
	p.arm(t, at.does("block"))
	s := p.mcp(t)
	answer := s.sendPatch(thePatch, "key")
	p.wantReached(t, at)
	p.arm(t)
	return s, answer
}

// wantAgreement wants an answer to be the truth that is known later, or to be that
// nobody knows yet.
func (p patchPlace) wantAgreement(t *testing.T, s *session, r result) string {
	t.Helper()
	word := p.wantSettled(t, s, "key")
	if first := said(r); first != notKnown && first != word {
		t.Errorf("operation_status says %s after the answer %v", word, r)
	}
	s.end(t)
	wantNobodyBut(t)
	return word
}

// TestRunnerAndPatchHelperKilled kills the runner, and then the patch helper, at each
// step.
func TestRunnerAndPatchHelperKilled(t *testing.T) {
	var c tally
	for _, at := range shared(of(undisturbed(t), "codespace-patch")) {
		c.run(t, at.String(), func(t *testing.T) string {
			p := newPatchPlace(t)
			s, answer := p.blocked(t, at)
			helper := patcher(t)
			kill(t, anatomyOf(s.pid())[runner], false)
			kill(t, helper, false)
			return p.wantAgreement(t, s, s.await(t, answer))
		})
	}
	c.report(t, applied, rolledBack)
}

// TestPatchHelperOutlivesItsRunner kills the runner while its patch helper is at a
// step: the helper brings the patch to its end, and nobody comes between.
func TestPatchHelperOutlivesItsRunner(t *testing.T) {
	var c tally
	for _, at := range of(undisturbed(t), "codespace-patch", "rename") {
		c.run(t, at.String(), func(t *testing.T) string {
			p := newPatchPlace(t)
			resume := p.resumable(t)
			s, answer := p.blocked(t, at)
			kill(t, anatomyOf(s.pid())[runner], false)
			p.wantBusy(t, s)
			resume()
			word := p.wantAgreement(t, s, s.await(t, answer))
			if word != applied {
				t.Errorf("a patch whose helper went on is %s", word)
			}
			return word
		})
	}
	c.report(t, applied)
}

// wantBusy wants a patch to be under way still: its end is not known, and no other is
// let in.
func (p patchPlace) wantBusy(t *testing.T, s *session) {
	t.Helper()
	if r := s.operation(t, "key"); said(r) != notKnown {
		t.Errorf("operation_status of a patch that is under way: %v", r)
	}
	if r := s.patch(t, another("too-early"), mark()); r.code() != "WORKSPACE_BUSY" {
		t.Errorf("another patch beside one that is under way: %v", r)
	}
}

// TestPatchHelperHangsWithoutRunner leaves a patch helper hanging whose runner was
// killed: that the end is not known is answered in time, and it is once the helper
// has ended.
func TestPatchHelperHangsWithoutRunner(t *testing.T) {
	renames := of(undisturbed(t), "codespace-patch", "rename")
	p := newPatchPlace(t)
	s, answer := p.blocked(t, renames[len(renames)/2])
	kill(t, anatomyOf(s.pid())[runner], false)
	r := s.await(t, answer)
	if r.code() != "RUNNER_UNAVAILABLE" || said(r) != notKnown || r.text("operation_id") == "" {
		t.Errorf("the answer: %v", r)
	}
	p.wantBusy(t, s)
	kill(t, patcher(t), false)
	if word := p.wantAgreement(t, s, r); word != rolledBack {
		t.Errorf("a patch that was half done is %s", word)
	}
}

// TestGatewayKilledWhilePatchIsApplied kills the gateway while the patch helper is at a
// step. The next codespace leaves it alone until it has ended.
func TestGatewayKilledWhilePatchIsApplied(t *testing.T) {
	var c tally
	for _, at := range of(undisturbed(t), "codespace-patch", "rename") {
		c.run(t, at.String(), func(t *testing.T) string {
			p := newPatchPlace(t)
			resume := p.resumable(t)
			s, answer := p.blocked(t, at)
			kill(t, s.pid(), false)
			if r := s.await(t, answer); !r.gone {
				t.Errorf("a gateway that was killed answers %v", r)
			}
			next := p.mcp(t)
			p.wantBusy(t, next)
			resume()
			word := p.wantSettled(t, next, "key")
			if word != applied {
				t.Errorf("a patch whose helper went on is %s", word)
			}
			next.end(t)
			wantNobodyBut(t)
			return word
		})
	}
	c.report(t, applied)
}
