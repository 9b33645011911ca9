package runner

import (
	"context"
	"errors"
	"time"

	"codespace/openat2fs"
	"codespace/policy"
	"codespace/sandbox"
)

// Prepared cells wait in a box for their launch, by what they were asked to be.
// How many depends on how often they were taken of late; a command that finds
// none makes its own and never waits for a refill.
const (
	poolMost   = 8                     // cells of a kind
	poolTotal  = 64                    // cells of a runner
	poolRecent = 2 * time.Second       // what counts as of late
	refillBusy = 30 * time.Millisecond // after a launch: its command has the processors first
	refillIdle = 5 * time.Millisecond  // after a command's end, likewise for who hears of it
	poolIdle   = 30 * time.Second      // without a command, prepared cells are given back
	boxIdle    = 15 * time.Minute      // without a command, the sandbox is put away
)

// pool is guarded by sandboxes.boxMu.
type pool struct {
	ready   []*sandbox.Cell
	taken   []time.Time // of late
	filling bool
	due     time.Time // of the next refill, zero if none is due
	alarm   *time.Timer
}

// obtain returns a cell for a decided workspace and the box that holds it. A sandbox
// that stood and makes no cells any more is replaced, once: making one has no effect
// that could happen twice.
func (s *sandboxes) obtain(ctx context.Context, g policy.Grant, w sandbox.Wish) (*box, *sandbox.Cell, error) {
	for again := true; ; again = false {
		b, err := s.enter(ctx, g)
		if err != nil {
			return nil, nil, err
		}
		c, err := s.take(ctx, b, w)
		if err == nil {
			return b, c, nil
		}
		s.leave(b)
		var f *sandbox.Failure
		if !again || !errors.As(err, &f) && !errors.Is(err, sandbox.ErrHelperLost) {
			return nil, nil, err
		}
	}
}

// take returns a prepared cell, or makes one.
func (s *sandboxes) take(ctx context.Context, b *box, w sandbox.Wish) (*sandbox.Cell, error) {
	if c := s.prepared(b, w); c != nil {
		return c, nil
	}
	return s.cell(ctx, b, w)
}

func (s *sandboxes) prepared(b *box, w sandbox.Wish) *sandbox.Cell {
	s.boxMu.Lock()
	defer s.boxMu.Unlock()
	p := b.pools[w]
	if p == nil {
		p = &pool{}
		p.alarm = time.AfterFunc(time.Hour, func() { s.refill(b, w) })
		p.alarm.Stop()
		b.pools[w] = p
	}
	p.taken = append(p.taken, time.Now())
	for len(p.ready) > 0 {
		c := p.ready[0]
		p.ready = p.ready[1:]
		s.pooled--
		if c.Ready() && !b.helper.lost() {
			return c
		}
		go c.Close() // it died while it waited
	}
	return nil
}

// want is how many cells of a kind should be ready now.
func (p *pool) want(now time.Time) int {
	for len(p.taken) > 0 && now.Sub(p.taken[0]) > poolRecent {
		p.taken = p.taken[1:]
	}
	return min(max(len(p.taken), 1), poolMost)
}

// refillIn has cells made after a pause of commands: to make one takes as much of
// the processors as a short command does. When less than half are left, that is put
// off no further.
func (s *sandboxes) refillIn(d time.Duration, b *box, w sandbox.Wish) {
	s.boxMu.Lock()
	defer s.boxMu.Unlock()
	p, now := b.pools[w], time.Now()
	at, low := now.Add(d), 2*len(p.ready) < p.want(now)
	if b.stale || low && !p.due.IsZero() && p.due.Before(at) {
		return
	}
	p.due = at
	p.alarm.Reset(d)
}

// refill makes cells in the background until enough are ready. One refill of a
// kind runs at a time.
func (s *sandboxes) refill(b *box, w sandbox.Wish) {
	s.boxMu.Lock()
	defer s.boxMu.Unlock()
	p := b.pools[w]
	p.due = time.Time{}
	b.idle.Reset(poolIdle)
	if p.filling || !s.wantsLocked(b, p) {
		return
	}
	p.filling = true
	s.refills.Go(func() { s.fill(b, w, p) })
}

func (s *sandboxes) wantsLocked(b *box, p *pool) bool {
	return !b.stale && !s.ended && s.pooled < poolTotal && len(p.ready) < p.want(time.Now())
}

func (s *sandboxes) fill(b *box, w sandbox.Wish, p *pool) {
	for {
		c, err := s.cell(context.Background(), b, w)
		s.boxMu.Lock()
		if err == nil && !b.stale && !s.ended {
			p.ready = append(p.ready, c)
			s.pooled++
			c = nil
		}
		again := err == nil && s.wantsLocked(b, p)
		p.filling = again
		s.boxMu.Unlock()
		if c != nil {
			c.Close()
		}
		if err != nil {
			s.log.Warn("cannot prepare a cell ahead", "sandbox", b.id, "error", err)
		}
		if !again {
			return
		}
	}
}

// drainLocked gives back every prepared cell of a box.
func (s *sandboxes) drainLocked(b *box) {
	for _, p := range b.pools {
		p.alarm.Stop()
		p.due = time.Time{} // else nothing would seem to be due sooner, for ever
		for _, c := range p.ready {
			s.pooled--
			s.refills.Go(c.Close)
		}
		p.ready = nil
	}
}

// drain gives back the prepared cells of a workspace whose root is no longer at its
// path.
func (s *sandboxes) drain(workspace string, is openat2fs.Identity) {
	s.boxMu.Lock()
	defer s.boxMu.Unlock()
	if b := s.boxes[workspace]; b != nil && is == (openat2fs.Identity{Device: b.root.Device, Inode: b.root.Inode}) {
		s.drainLocked(b)
	}
}

// idled is called when a box had no command for a while: first its prepared cells
// go, then, after a longer while, the sandbox itself.
func (s *sandboxes) idled(b *box) {
	s.boxMu.Lock()
	defer s.boxMu.Unlock()
	if b.stale || b.live > 0 {
		return // the next command's end starts the clock again
	}
	if left := poolIdle - time.Since(b.used); left > 0 { // a command came and went meanwhile
		b.idle.Reset(left)
		return
	}
	s.drainLocked(b)
	if left := boxIdle - time.Since(b.used); left > 0 {
		b.idle.Reset(left)
		return
	}
	s.retireLocked(b)
}
