package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// subject is one way to have a command run.
type subject struct {
	name    string
	missing string // why it cannot be measured here, "" if it can
	sample  func(context.Context, *stopwatch) error
	close   func()              // ends what it holds; nil if nothing
	remark  func(*taken) string // on what its samples noted; nil if they note nothing
}

// stopwatch takes the stages of one sample, and notes what else is to be told of
// it. What is before start does not count.
type stopwatch struct {
	last  time.Time
	laps  []lap
	notes map[string]float64
}

type lap struct {
	name string
	took time.Duration
}

func (w *stopwatch) start() { w.laps, w.last = nil, time.Now() }

func (w *stopwatch) lap(name string) { w.lapAt(name, time.Now()) }

// lapAt ends a stage at a time that was taken elsewhere.
func (w *stopwatch) lapAt(name string, at time.Time) {
	w.laps = append(w.laps, lap{name, at.Sub(w.last)})
	w.last = at
}

func (w *stopwatch) note(name string, value float64) {
	if w.notes == nil {
		w.notes = map[string]float64{}
	}
	w.notes[name] += value
}

// whole is how long all stages took.
func (w *stopwatch) whole() (sum time.Duration) {
	for _, l := range w.laps {
		sum += l.took
	}
	return sum
}

// section is one table: its subjects in turns, a block of samples each.
type section struct {
	title    string
	n, block int
	pace     time.Duration // before each sample
	gap      time.Duration // before each turn
	stages   bool          // to be printed too
	subjects []*subject

	taken map[*subject]*taken
}

// taken is what was measured of one subject.
type taken struct {
	whole  []time.Duration
	stages []string // in the order in which they were first passed
	times  map[string][]time.Duration
	notes  map[string][]float64
}

func (t *taken) add(w *stopwatch) {
	for _, l := range w.laps {
		if !slices.Contains(t.stages, l.name) {
			t.stages = append(t.stages, l.name)
		}
		t.times[l.name] = append(t.times[l.name], l.took)
	}
	for name, value := range w.notes {
		t.notes[name] = append(t.notes[name], value)
	}
	t.whole = append(t.whole, w.whole())
}

// measure takes n samples of every subject. The first round is not counted.
func (s *section) measure(ctx context.Context) error {
	for done := -s.block; done < s.n; done += s.block {
		if done <= 0 {
			s.forget()
		}
		for _, subject := range s.subjects {
			if subject.missing != "" {
				continue
			}
			if err := s.turn(ctx, subject, min(s.block, s.n-done)); err != nil {
				return fmt.Errorf("%s: %s: %w", s.title, subject.name, err)
			}
		}
	}
	return nil
}

func (s *section) forget() {
	s.taken = map[*subject]*taken{}
	for _, subject := range s.subjects {
		s.taken[subject] = &taken{times: map[string][]time.Duration{}, notes: map[string][]float64{}}
	}
}

// turn takes some samples of one subject, one after the other.
func (s *section) turn(ctx context.Context, of *subject, samples int) error {
	time.Sleep(s.gap)
	for range samples {
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(s.pace)
		var w stopwatch
		w.start()
		if err := of.sample(ctx, &w); err != nil {
			return err
		}
		s.taken[of].add(&w)
	}
	return nil
}

// quantile is the smallest of the values that at least the share q does not
// exceed.
func quantile[T cmp.Ordered](values []T, q float64) T {
	sorted := slices.Sorted(slices.Values(values))
	i := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[max(i, 0)]
}
