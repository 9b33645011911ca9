package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// rate is how many commands a subject got done, and how long each took.
type rate struct {
	took  []time.Duration // of each command
	spent time.Duration   // until the last of a slice had ended, over all slices
}

func (r *rate) perSecond() float64 { return float64(len(r.took)) / r.spent.Seconds() }

// rates measures commands per second with several callers, each of which asks for
// its next command as soon as the last has ended.
func rates(ctx context.Context, r report, o options, g *grounds) error {
	runner, err := atRunner(g.configured)
	if err != nil {
		return err
	}
	defer runner.close()
	subjects := o.chosen(baseline(), runner, bubblewrap())
	r.heading(fmt.Sprintf("commands per second, sustained for %v in slices of %v", o.sustain, o.slice), "n", "median", "p95", "per second", "ratio")
	for _, callers := range []int{1, 2, 8} {
		got, err := sustain(ctx, o, callers, subjects)
		if err != nil {
			return err
		}
		for _, s := range subjects {
			name := fmt.Sprintf("%d at once: %s", callers, s.name)
			if s.missing != "" {
				r.row(name, "-", s.missing)
				continue
			}
			one := got[s]
			r.row(name, fmt.Sprint(len(one.took)), shown(quantile(one.took, 0.5)), shown(quantile(one.took, 0.95)),
				fmt.Sprintf("%.1f", one.perSecond()), ratio(one.perSecond(), got[subjects[0]].perSecond()))
		}
	}
	return nil
}

// sustain has the subjects take turns of a slice. The first, shorter round is not
// counted.
func sustain(ctx context.Context, o options, callers int, subjects []*subject) (map[*subject]*rate, error) {
	got := map[*subject]*rate{}
	for done := -o.slice; done < o.sustain; done += o.slice {
		slice := min(o.slice, o.sustain-done)
		if done < 0 {
			slice = o.slice / 4
		}
		for _, s := range subjects {
			if s.missing != "" {
				continue
			}
			if done <= 0 {
				got[s] = &rate{}
			}
			time.Sleep(gap)
			if err := got[s].crowd(ctx, s, callers, slice); err != nil {
				return nil, fmt.Errorf("%s, %d at once: %w", s.name, callers, err)
			}
		}
	}
	return got, nil
}

// crowd runs commands for a while, and to the end those that have begun by then.
func (r *rate) crowd(ctx context.Context, s *subject, callers int, slice time.Duration) error {
	begun := time.Now()
	times, errs := make([][]time.Duration, callers), make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for errs[i] == nil && time.Since(begun) < slice {
				var w stopwatch
				w.start()
				errs[i] = errors.Join(ctx.Err(), s.sample(ctx, &w))
				times[i] = append(times[i], w.whole())
			}
		})
	}
	all.Wait()
	r.spent += time.Since(begun)
	for _, t := range times {
		r.took = append(r.took, t...)
	}
	return errors.Join(errs...)
}
