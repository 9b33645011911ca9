package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"codespace/runner"
	"codespace/sandbox"
	"codespace/sandbox/message"
)

// helperSide is a helper process with one sandbox, driven as a runner does it
// but with nothing made ahead: every cell is asked for when it is needed.
type helperSide struct {
	*ground
	*sandbox.Helper
	cmd      *exec.Cmd
	instance *runner.Instance
	lifeline *os.File // the writing end: held for as long as the helper is to live
	null     *os.File
	box      string
}

func newHelper(ctx context.Context, g *ground) (*helperSide, error) {
	h := &helperSide{ground: g}
	err := h.start()
	if err == nil {
		err = h.prepare(ctx)
	}
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// atHelper is one command below the runner: a cell, a launch and two ends.
func atHelper(ctx context.Context, g *ground) (*subject, error) {
	h, err := newHelper(ctx, g)
	if err != nil {
		return nil, err
	}
	return &subject{name: "a cell made, launched and put away, at the helper", sample: h.sample, close: h.close}, nil
}

// firstAtHelper has a helper of its own for each command.
func firstAtHelper(g *ground) *subject {
	return &subject{name: "a cell made, launched and put away, at a new helper", sample: func(ctx context.Context, w *stopwatch) error {
		h := &helperSide{ground: g}
		defer h.close()
		w.start()
		if err := h.start(); err != nil {
			return err
		}
		w.lap("helper: its process started")
		if err := h.prepare(ctx); err != nil {
			return err
		}
		w.lap("sandbox: plan sent to receipt, one cell tried")
		return h.sample(ctx, w)
	}}
}

func (h *helperSide) start() (err error) {
	if h.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return err
	}
	if h.instance, err = runner.NewInstance(); err != nil {
		return err
	}
	stage, prefix, err := h.instance.NewStage()
	if err != nil {
		return err
	}
	h.box = prefix + "-1"
	ours, theirs, err := message.Pair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	lifeline, held, err := os.Pipe()
	if err != nil {
		return err
	}
	defer lifeline.Close()
	h.lifeline = held
	h.cmd = exec.Command(h.program("codespace-helper"), "serve", stage)
	h.cmd.Env, h.cmd.Stderr = []string{}, os.Stderr
	h.cmd.ExtraFiles = []*os.File{theirs, lifeline}
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := h.cmd.Start(); err != nil {
		ours.Close()
		return err
	}
	h.Helper, err = sandbox.NewHelper(ours)
	return err
}

// prepare builds the sandbox that a runner would.
func (h *helperSide) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	plan := sandbox.NewPlan(h.grant, h.box, h.registry.State.Dir)
	for _, c := range plan.Caches {
		if err := os.MkdirAll(c.Source, 0o700); err != nil {
			return err
		}
	}
	var err error
	plan.Root.Path = h.workspace.Root
	if plan.Root.Device, plan.Root.Inode, err = runner.RootOf(h.workspace.Root); err != nil {
		return err
	}
	plan.Identity = (sandbox.Host{}).Starter()
	plan.Identity.DiskUID, plan.Identity.DiskGID = os.Geteuid(), os.Getegid()
	if (sandbox.Host{}).Root() {
		// The last of the range: the one least likely to be in use.
		last := int(h.registry.Identity.UIDBase + h.registry.Identity.UIDCount - 1)
		plan.Identity.HostUID, plan.Identity.HostGID = last, last
	}
	_, err = h.Prepare(ctx, plan)
	return err
}

func (h *helperSide) close() {
	if h.Helper != nil {
		h.Helper.Close()
		hung := time.AfterFunc(patience, func() { h.cmd.Process.Kill() })
		defer hung.Stop()
		h.cmd.Wait()
	}
	for _, f := range []*os.File{h.lifeline, h.null} {
		if f != nil {
			f.Close()
		}
	}
	if h.instance != nil {
		h.instance.Remove()
	}
}

func (h *helperSide) sample(ctx context.Context, w *stopwatch) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cell, err := h.Cell(ctx, h.box, sandbox.Wish{Writable: true})
	if err != nil {
		return err
	}
	w.lap("cell: asked for to locked down and read back")
	defer cell.Close()
	if err := h.launch(cell, w); err != nil {
		return err
	}
	cell.Close()
	w.lap("put away: descriptors closed, cgroup removed")
	return nil
}

// launch has a cell run the command and waits until its tree is gone.
func (h *helperSide) launch(cell *sandbox.Cell, w *stopwatch) error {
	err := cell.Launch(sandbox.Launch{
		Argv: []string{command}, Env: sandbox.Environment(h.workspace, false), Cwd: h.workspace.Root, Files: [3]*os.File{h.null, h.null, h.null},
	})
	if err != nil {
		return err
	}
	w.lap("launch: sent to started")
	event, err := cell.Next()
	if err != nil || event.Empty || event.Status.ExitStatus() != 0 {
		return fmt.Errorf("%s ended with %+v: %w", command, event, err)
	}
	w.lap("started to exited")
	for err == nil && !event.Empty {
		event, err = cell.Next()
	}
	w.lap("exited to empty")
	cell.Gone()
	w.lap("empty to PID 1 gone")
	return nil
}
