package faults_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestNothingIsKilledSpuriously starts hundreds of commands at once and in a row,
// over sessions that live long and runs that do not, each on a workspace of its
// own. A signal bound to a thread of a parent (PR_SET_PDEATHSIG) would show here
// as a command that ends early.
func TestNothingIsKilledSpuriously(t *testing.T) {
	t.Parallel()
	sessions, runs, each := 6, 2, share(72)
	var whole atomic.Int64
	var workers sync.WaitGroup
	for w := range sessions {
		s, base := newPlace(t).mcp(t), w*each
		workers.Go(func() {
			for i := range each {
				if s.wholeCommand(t, base+i) {
					whole.Add(1)
				}
			}
		})
	}
	for range runs {
		p := newPlace(t)
		workers.Go(func() {
			for i := range each / 2 {
				r := p.run(t, "sh", "-c", shortCommand(i))
				if r.status() != i%256 || r.stdout.String() != shortOutput(i) {
					t.Errorf("codespace run %d: exit %d, %q, %q", i, r.status(), r.stdout.String(), r.stderr.String())
					continue
				}
				whole.Add(1)
			}
		})
	}
	workers.Wait()
	total := int64(sessions*each + runs*(each/2))
	t.Logf("%d of %d commands ended as themselves", whole.Load(), total)
	if whole.Load() != total {
		t.Errorf("%d commands did not", total-whole.Load())
	}
}

func shortCommand(i int) string {
	return fmt.Sprintf("echo a%d; sleep 0.0%d; echo b%d; exit %d", i, i%4, i, i%256)
}

func shortOutput(i int) string { return fmt.Sprintf("a%d\nb%d\n", i, i) }

// wholeCommand tells whether a short command ran from its first line to its last.
func (s *session) wholeCommand(t *testing.T, i int) bool {
	r := s.await(t, s.begin("sh", "-c", shortCommand(i)))
	if r.text("dispatch_status") != "confirmed" {
		t.Errorf("command %d: %v", i, r)
		return false
	}
	id := r.text("process_id")
	out := s.allOutput(t, id)
	st := s.exited(t, id, time.Minute)
	if st.text("termination") != "exited" || st.fields["exit_code"] != float64(i%256) || out != shortOutput(i) {
		t.Errorf("command %d: %v, %q", i, st, out)
		return false
	}
	return true
}

// allOutput reads a command's output to its end.
func (s *session) allOutput(t *testing.T, id string) string {
	all := ""
	for {
		r := s.output(t, id, len(all))
		if all += r.text("chunk"); r.failed || r.gone || r.fields["eof"] == true {
			return all
		}
	}
}
