package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"codespace/runner"
	"codespace/runner/wire"
)

// patience is for one answer.
const patience = 60 * time.Second

// runnerSide is a runner process and our end of its socket.
type runnerSide struct {
	*ground
	child    *wire.Child
	instance *runner.Instance
	ended    chan runner.Ended
}

func (g *ground) startRunner(ctx context.Context) (*runnerSide, error) {
	r := &runnerSide{ground: g, ended: make(chan runner.Ended, 1)}
	var err error
	if r.instance, err = runner.NewInstance(); err != nil {
		return nil, err
	}
	settings := g.settings
	settings.Instance = r.instance.Dir()
	stdin, err := settings.Encode()
	if err == nil {
		r.child, err = wire.Spawn(ctx, wire.Program{
			Path: g.program("codespace-runner"), Args: []string{"serve"}, Dir: r.instance.SocketDir(),
			Digest: runner.Settings{}.Digest(g.registry), Stdin: stdin, OnEnded: func(e runner.Ended) { r.ended <- e },
		})
	}
	if err != nil {
		r.instance.Remove()
		return nil, err
	}
	return r, nil
}

func (r *runnerSide) close() {
	r.child.Client.Close()
	hung := time.AfterFunc(patience, func() { r.child.Kill() })
	defer hung.Stop()
	r.child.Wait()
	r.instance.Remove()
}

// sample is one command as the gateway sees it, from the request until its
// ending is known.
func (r *runnerSide) sample(ctx context.Context, w *stopwatch) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var id [16]byte
	rand.Read(id[:])
	request := runner.ExecRequest{
		ProcessID: "proc_" + hex.EncodeToString(id[:]), Workspace: r.workspace.ID, Digest: r.grant.Digest,
		Access: r.grant.Access, Argv: []string{command},
	}
	w.start()
	if _, err := r.child.Client.Exec(ctx, request, nil); err != nil {
		return err
	}
	w.lap("exec: asked for to started")
	var e runner.Ended
	select {
	case e = <-r.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	w.lap("started to ended, its tree gone")
	if e.ProcessID != request.ProcessID || e.ExitCode == nil || *e.ExitCode != 0 {
		return fmt.Errorf("%s ended with %+v", command, e)
	}
	return nil
}

func atRunner(g *ground) (*subject, error) {
	r, err := g.startRunner(context.Background())
	if err != nil {
		return nil, err
	}
	return &subject{name: "exec_command to exit seen, at the runner", sample: r.sample, close: r.close}, nil
}

// firstAtRunner has a runner that has not run anything yet for each command.
func firstAtRunner(g *ground) *subject {
	return &subject{name: "exec_command to exit seen, at a new runner", sample: func(ctx context.Context, w *stopwatch) error {
		r, err := g.startRunner(ctx)
		if err != nil {
			return err
		}
		defer r.close()
		return r.sample(ctx, w)
	}}
}
