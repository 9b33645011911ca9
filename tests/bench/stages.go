package main

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"codespace/sandbox"
)

// stages shows where the time of one prepared command goes. All times are taken
// outside, or were told by the runner for everyone.
func stages(ctx context.Context, r report, o options, g *grounds) error {
	side, err := g.embedded.startRunner(ctx)
	if err != nil {
		return err
	}
	defer side.close()
	h, err := newHelper(ctx, g.embedded)
	if err != nil {
		return err
	}
	defer h.close()
	s := section{
		title: fmt.Sprintf("one command step by step, paced, %v before each", o.pace), n: o.n, block: 1, pace: o.pace, stages: true,
		subjects: o.chosen(forked(),
			&subject{name: "a prepared cell launched, at the helper", sample: h.prepared},
			&subject{name: "exec_command to exit seen, at the runner, a prepared cell", sample: side.dissected, remark: found},
			&subject{name: "a ping, at the runner: its socket, there and back", sample: side.ping},
		),
	}
	return s.show(ctx, r)
}

// forked is the baseline in two steps.
func forked() *subject {
	b := baseline()
	b.sample = func(ctx context.Context, w *stopwatch) error {
		cmd := exec.CommandContext(ctx, command)
		if err := cmd.Start(); err != nil {
			return err
		}
		w.lap("start: cloned and its image running")
		err := cmd.Wait()
		w.lap("running to waited for")
		return err
	}
	return b
}

// prepared is a launch alone: its cell is made before and put away after.
func (h *helperSide) prepared(ctx context.Context, w *stopwatch) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cell, err := h.Cell(ctx, h.box, sandbox.Wish{Writable: true})
	if err != nil {
		return err
	}
	defer cell.Close()
	time.Sleep(gap / 20) // making it is over and done
	w.start()
	return h.launch(cell, w)
}

// dissected is a command of which the runner's own clock is asked too: when it
// launched the cell, and when it knew that the tree had ended. Both clocks are the
// host's, so the steps add up; the third can end before the second is known of, and
// is then less than zero.
func (r *runnerSide) dissected(ctx context.Context, w *stopwatch) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, end := r.request(r.place, command)
	since := ticks()
	w.start()
	w.last = w.last.Round(0) // what the runner tells has no monotonic part
	result, err := r.child.Client.Exec(ctx, request, nil)
	running := time.Now().Round(0)
	if err != nil {
		return err
	}
	err = await(ctx, end)
	told := time.Now().Round(0)
	if err != nil {
		return err
	}
	status, err := r.child.Client.Status(ctx, request.ProcessID)
	if err != nil {
		return err
	}
	w.lapAt("asked to launch: request read, decided, cell taken, pipes made", result.Started)
	w.lapAt("launch to started: argv exec'ed, confirmed, answer read", running)
	w.lapAt("started to ended: tree gone, output at its end, accounts read", status.Ended)
	w.lapAt("ended to told: event sent and read", told)
	if result.Tree.Birth < since {
		w.note(prepared, 1)
	}
	return nil
}

func (r *runnerSide) ping(ctx context.Context, w *stopwatch) error {
	w.start()
	err := r.child.Client.Ping(ctx)
	w.lap("there and back")
	return err
}
