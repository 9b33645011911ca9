package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"time"

	"codespace/policy"
	"codespace/runner"
	"codespace/runner/wire"
)

// ExecArguments are the arguments of exec_command.
type ExecArguments struct {
	WorkspaceID string
	Command     []string
	TTY         bool          // a pseudo-terminal instead of pipes
	Access      policy.Access // "" for the most that is permitted; it can only be lowered
	Files       []*os.File    // codespace run only: stdin, stdout and stderr of the command itself
}

// Dispatch is the identity of a started command.
type Dispatch struct {
	ProcessID string `json:"process_id"`
	Status    string `json:"dispatch_status"` // "confirmed" or "unknown"

	Receipt []string `json:"-"` // layers, for codespace run
}

// Exec is the line of a command: policy, lease, runner. It returns once the
// command runs, with the identity under which it can be observed; an "unknown"
// dispatch may or may not run and is not to be repeated.
func (g *Gateway) Exec(ctx context.Context, p Principal, a ExecArguments) (Dispatch, error) {
	workspace, err := g.workspace(p, a.WorkspaceID)
	if err != nil {
		return Dispatch{}, err
	}
	grant, err := policy.Decide(workspace, policy.Action{Kind: policy.Execute, Access: a.Access})
	if err != nil {
		return Dispatch{}, fault(err, runner.Unauthorized)
	}
	id := mint()
	if grant.Access == policy.AccessWrite && g.unsettled(grant.Workspace.ID) != nil {
		g.book(ctx) // tries again
	}
	lease, err := g.lease(grant, Holder{Kind: "exec", ProcessID: id})
	if err == nil && lease != nil {
		err = g.unsettled(grant.Workspace.ID)
	}
	if err != nil {
		lease.Release()
		return Dispatch{}, err
	}
	return g.dispatch(ctx, p, grant, command{id: id, argv: a.Command, tty: a.TTY, files: a.Files, lease: lease})
}

// command is a decided command that holds its lease, if it needs one.
type command struct {
	id    string
	argv  []string
	tty   bool
	files []*os.File
	lease *Lease // nil for a command that cannot write
}

// dispatch hands a command to the runner. From here the lease belongs to the
// command: it ends with the command's tree, or with the runner.
func (g *Gateway) dispatch(ctx context.Context, p Principal, grant policy.Grant, c command) (Dispatch, error) {
	child, err := g.runner(ctx)
	if err != nil {
		c.lease.Release()
		return Dispatch{}, err
	}
	g.enter(c.id, &exec{owner: p, workspace: grant.Workspace.ID, lease: c.lease, child: child, over: make(chan struct{})})
	req := runner.ExecRequest{ProcessID: c.id, Workspace: grant.Workspace.ID, Digest: grant.Digest, Access: grant.Access,
		Argv: c.argv, TTY: c.tty, Attached: c.files != nil}
	// The answer is waited for even if the client is gone: only it tells.
	res, err := child.Client.Exec(context.WithoutCancel(ctx), req, c.lease.with(c.files))
	var unsure *wire.Uncertain
	if errors.As(err, &unsure) {
		g.log.Warn("dispatch unknown", "process_id", c.id, "error", err)
		return Dispatch{ProcessID: c.id, Status: "unknown"}, nil
	}
	if err != nil {
		c.lease.Release()
		g.forget(c.id)
		return Dispatch{}, fault(err, runner.Internal)
	}
	g.started(c.id, res.Tree.AwaitGone)
	return Dispatch{ProcessID: c.id, Status: "confirmed", Receipt: res.Receipt.Layers}, nil
}

func (g *Gateway) started(id string, gone func(time.Duration) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.execs[id]; e != nil {
		e.gone = gone
	}
}

// mint makes a process id that cannot be guessed.
func mint() string {
	var b [16]byte
	rand.Read(b[:])
	return "proc_" + hex.EncodeToString(b[:])
}

// Read returns output of a process from a cursor on, waiting at most r.Wait.
func (g *Gateway) Read(ctx context.Context, p Principal, r runner.ReadRequest) (runner.ReadResult, error) {
	e, err := g.own(p, r.ProcessID)
	if err != nil {
		return runner.ReadResult{}, err
	}
	return e.child.Client.Read(ctx, r)
}

// Status tells whether a process runs or how it ended.
func (g *Gateway) Status(ctx context.Context, p Principal, processID string) (runner.Status, error) {
	e, err := g.own(p, processID)
	if err != nil {
		return runner.Status{}, err
	}
	return e.child.Client.Status(ctx, processID)
}

// Terminate ends a process: TERM, the workspace's grace, then KILL of its tree.
func (g *Gateway) Terminate(ctx context.Context, p Principal, processID string) error {
	e, err := g.own(p, processID)
	if err != nil {
		return err
	}
	return e.child.Client.Terminate(ctx, processID)
}

// Wait returns once a process has exited, with its status.
func (g *Gateway) Wait(ctx context.Context, p Principal, processID string) (runner.Status, error) {
	e, err := g.own(p, processID)
	if err != nil {
		return runner.Status{}, err
	}
	select {
	case <-e.over:
	case <-ctx.Done():
		return runner.Status{}, ctx.Err()
	}
	return e.child.Client.Status(ctx, processID)
}

// Signal sends a signal to the process group of a command.
func (g *Gateway) Signal(ctx context.Context, p Principal, processID string, sig int) error {
	e, err := g.own(p, processID)
	if err != nil {
		return err
	}
	return e.child.Client.Signal(ctx, processID, sig)
}
