package runner

import (
	"testing"
	"time"

	"codespace/sandbox"
)

// A box whose prepared cells were given back while a refill was due gets cells again
// at its next command.
func TestDrainedPoolIsRefilled(t *testing.T) {
	idle := time.AfterFunc(time.Hour, func() {})
	defer idle.Stop()
	s, w := &sandboxes{}, sandbox.Wish{Writable: true}
	b := &box{pools: map[sandbox.Wish]*pool{}, idle: idle}
	s.prepared(b, w)
	s.refillIn(time.Hour, b, w)
	s.boxMu.Lock()
	s.drainLocked(b)
	s.boxMu.Unlock()
	s.refillIn(2*time.Hour, b, w)
	p := b.pools[w]
	if !p.alarm.Stop() || time.Until(p.due) < time.Hour {
		t.Errorf("the next refill is due at %v", p.due)
	}
	s.refillIn(time.Hour, b, w) // one that is due sooner is
	if left := time.Until(p.due); left > time.Hour {
		t.Errorf("the next refill is due in %v", left)
	}
	p.alarm.Stop()
}
