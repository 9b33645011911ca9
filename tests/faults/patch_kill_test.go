package faults_test

import (
	"slices"
	"testing"
)

// TestPatchHelperDiesAtEachStep ends the patch helper at each of its steps: the same
// call answers with what became of the patch.
func TestPatchHelperDiesAtEachStep(t *testing.T) {
	var c tally
	for _, at := range of(undisturbed(t), "codespace-patch") {
		c.run(t, at.String(), func(t *testing.T) string { return newPatchPlace(t).answeredDespite(t, at, at.does("exit")) })
	}
	c.report(t, applied, rolledBack)
}

// answeredDespite applies the patch under failpoints, the first of them at a step of
// the patch helper, and wants the truth from the same call and afterwards.
func (p patchPlace) answeredDespite(t *testing.T, at step, failpoints ...string) string {
	p.arm(t, failpoints...)
	s := p.mcp(t)
	r := s.patch(t, thePatch, "key")
	p.wantReached(t, at)
	word := said(r)
	p.wantDisk(t, word)
	if again := p.wantSettled(t, s, "key"); again != word {
		t.Errorf("operation_status says %s after the answer %v; stderr: %s", again, r, &s.stderr)
	}
	s.end(t)
	wantNobodyBut(t)
	return word
}

// TestPatchSettlerDiesAtEachStep ends the helper that settles what one has left that
// died, at each of its steps, where there was most to undo and where there is
// something to complete.
func TestPatchSettlerDiesAtEachStep(t *testing.T) {
	var c tally
	steps := undisturbed(t)
	renames, unlinks := of(steps, "codespace-patch", "rename"), of(steps, "codespace-patch", "unlink")
	for _, first := range []step{renames[len(renames)-1], unlinks[0], unlinks[1]} {
		for _, second := range each(2, shared(first.settling(t))) {
			c.run(t, first.String()+", then "+second.String(), func(t *testing.T) string {
				return newPatchPlace(t).answeredDespite(t, second, first.does("exit"), second.does("exit"))
			})
		}
	}
	c.report(t, applied, rolledBack)
}

// settling are the steps of the helper that settles when the one that applies the patch
// dies at a step.
func (s step) settling(t *testing.T) []step { return s.followedBy(t, "exit") }

// undoing are the steps after one that fails.
func (s step) undoing(t *testing.T) []step { return s.followedBy(t, "ENOSPC") }

func (s step) followedBy(t *testing.T, action string) []step {
	t.Helper()
	p := newPatchPlace(t)
	p.answeredDespite(t, s, s.does(action))
	all := of(p.steps(t), s.program)
	next := 1 + slices.IndexFunc(all, func(r step) bool { return r.hit == s.hit })
	more := slices.IndexFunc(all[next:], func(r step) bool { return r.name == "create" }) // of the next patch
	return all[next : next+more]
}

// TestGatewayDiesAtEachStepOfPatch ends the gateway at each of its steps: the next one
// settles.
func TestGatewayDiesAtEachStepOfPatch(t *testing.T) {
	var c tally
	for _, at := range of(undisturbed(t), "codespace") {
		c.run(t, at.String(), func(t *testing.T) string {
			p := newPatchPlace(t)
			p.arm(t, at.does("exit"))
			s := p.mcp(t)
			if r := s.patch(t, thePatch, "key"); !r.gone {
				t.Fatalf("control: the gateway answers %v", r)
			}
			p.wantReached(t, at)
			p.arm(t)
			return p.settledByNext(t)
		})
	}
	c.report(t, applied, rolledBack, notFound)
}

// settledByNext is how the patch ended by the word of the next codespace, which must
// be true.
func (p patchPlace) settledByNext(t *testing.T) string {
	t.Helper()
	s := p.mcp(t)
	word := p.wantSettled(t, s, "key")
	s.end(t)
	wantNobodyBut(t)
	return word
}

// TestRunnerDiesBeforeItAnswers ends the runner when it knows the end of the patch and
// has not told it.
func TestRunnerDiesBeforeItAnswers(t *testing.T) {
	at := of(undisturbed(t), "codespace-runner")[0]
	p := newPatchPlace(t)
	if word := p.answeredDespite(t, at, at.does("exit")); word != applied {
		t.Errorf("a patch that was applied is %s", word)
	}
}
