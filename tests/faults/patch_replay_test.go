package faults_test

import (
	"strings"
	"sync"
	"testing"
)

// appending is a patch that shows on the disk how often it was applied.
const appending = "*** Begin Patch\n*** Update File: lib/update.txt\n+applied\n*** End Patch\n"

func (p patchPlace) applications(t testing.TB) int {
	t.Helper()
	return strings.Count(p.look(t)["lib/update.txt"], "applied\n")
}

// known repeats a call until its end is known and nobody is in the way.
func (s *session) known(t testing.TB, text, key string) result {
	t.Helper()
	var r result
	within(settleLimit, func() bool {
		r = s.patch(t, text, key)
		return said(r) != notKnown && r.code() != "WORKSPACE_BUSY"
	})
	return r
}

// replayed tells whether an answer says that nothing was done now.
func replayed(r result) bool {
	details, _ := r.fields["details"].(map[string]any)
	return r.fields["replayed"] == true || details["replayed"] == true
}

// TestSameKeyAfterCrash sends a patch again, with its key, to the codespace after one
// that died in the middle of it.
func TestSameKeyAfterCrash(t *testing.T) {
	var c tally
	for _, tt := range []struct {
		name, word   string
		replayed     bool
		applications int
	}{
		{"mint", applied, false, 1}, // nobody knew of it: it is applied now
		{"minted", rolledBack, true, 0},
		{"finish", applied, true, 1},
	} {
		c.run(t, tt.name, func(t *testing.T) string {
			at := of(undisturbed(t), "codespace", tt.name)[0]
			p := newPatchPlace(t)
			p.arm(t, at.does("exit"))
			if r := p.mcp(t).patch(t, appending, "key"); !r.gone {
				t.Fatalf("control: the gateway answers %v", r)
			}
			p.arm(t)
			s := p.mcp(t)
			r := s.known(t, appending, "key")
			if said(r) != tt.word || replayed(r) != tt.replayed || p.applications(t) != tt.applications {
				t.Errorf("sent again: %v; applied %d times", r, p.applications(t))
			}
			again := s.known(t, appending, "key")
			if said(again) != tt.word || !replayed(again) || p.applications(t) != tt.applications {
				t.Errorf("sent a third time: %v; applied %d times", again, p.applications(t))
			}
			if r := s.known(t, thePatch, "key"); r.code() != "OPERATION_KEY_CONFLICT" {
				t.Errorf("another patch with the key: %v", r)
			}
			if r := s.known(t, appending, "another key"); said(r) != applied || p.applications(t) != tt.applications+1 {
				t.Errorf("with another key: %v; applied %d times", r, p.applications(t))
			}
			s.end(t)
			wantNobodyBut(t)
			return said(r)
		})
	}
	c.report(t, applied, rolledBack)
}

// TestSameKeyAtOnce sends a patch with one key a hundred times at once, over two
// sessions: it is applied once, and every call is told so.
func TestSameKeyAtOnce(t *testing.T) {
	const calls = 100
	p := newPatchPlace(t)
	sessions := []*session{p.mcp(t), p.mcp(t)}
	results := make([]result, calls)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { results[i] = sessions[i%2].known(t, appending, "key") })
	}
	all.Wait()
	first, same := 0, 0
	for _, r := range results {
		if said(r) != applied {
			t.Errorf("a call is answered with %v", r)
			continue
		}
		same++
		if !replayed(r) {
			first++
		}
	}
	t.Logf("%d of %d calls tell of %d application", same, calls, first)
	if n := p.applications(t); n != 1 || first != 1 {
		t.Errorf("applied %d times, %d calls say that they did it", n, first)
	}
	for _, s := range sessions {
		s.end(t)
	}
	wantNobodyBut(t)
}
