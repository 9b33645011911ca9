package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"codespace/gateway"
	"codespace/policy"
	"codespace/runner"
	"codespace/sandbox"
)

// proof is one command in one real sandbox, or why there was none.
type proof struct {
	Ran         bool               `json:"ran"`
	Enforcement policy.Enforcement `json:"enforcement"`
	Digest      string             `json:"digest,omitempty"` // of the receipt
	Receipt     []string           `json:"receipt"`          // layers in force, as the kernel showed them
	Error       *obstacle          `json:"error,omitempty"`  // why it did not run
}

// obstacle is a fault with what is in the way of it; the remedy is empty where
// nobody knows.
type obstacle struct {
	Code    runner.Code `json:"code"`
	Message string      `json:"message"`
	sandbox.Remedy
}

// ground is a fresh workspace with a state directory, away when doctor ends. nil
// is one that could not be made.
type ground struct{ dir string }

func newGround() (*ground, error) {
	dir, err := os.MkdirTemp("", "codespace-doctor-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a directory to try in: %w; set TMPDIR to one you may write", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", os.TempDir(), err)
	}
	g := &ground{dir}
	for _, d := range []string{g.workspace(), g.state()} {
		if err := os.Mkdir(d, 0o700); err != nil {
			g.remove()
			return nil, fmt.Errorf("cannot make a directory to try in: %w", err)
		}
	}
	return g, nil
}

func (g *ground) workspace() string { return filepath.Join(g.dir, "workspace") }

func (g *ground) state() string { return filepath.Join(g.dir, "state") }

func (g *ground) remove() { os.RemoveAll(g.dir) }

// prove builds a sandbox and runs true in it, through the same service as
// codespace run. The error is errInterrupted.
func (g *ground) prove(ctx context.Context, strict bool) (proof, error) {
	limit := time.Minute
	v, err := open(runner.Settings{Workspace: g.workspace(), Timeout: &limit, Strict: strict,
		Environ: map[string]string{"XDG_STATE_HOME": g.state(), "HOME": os.Getenv("HOME")}}, slog.New(slog.DiscardHandler))
	if err != nil {
		return failedProof(strict, err), nil
	}
	defer v.close()
	done := make(chan proof, 1)
	go func() { done <- tryTrue(v, strict) }()
	select {
	case p := <-done:
		return p, nil
	case <-ctx.Done():
		return proof{}, errInterrupted
	}
}

func tryTrue(v *service, strict bool) proof {
	ctx := context.Background()
	d, err := v.Exec(ctx, cli, gateway.ExecArguments{WorkspaceID: v.registry.IDs()[0], Command: []string{"true"}})
	if err != nil {
		return failedProof(strict, err)
	}
	end, err := v.Wait(ctx, cli, d.ProcessID)
	if err != nil {
		return failedProof(strict, err)
	}
	if end.ExitCode == nil || *end.ExitCode != 0 {
		return failedProof(strict, fmt.Errorf("a sandbox was built and true did not succeed in it: %s %s", end.Termination, end.Signal))
	}
	return proof{Ran: true, Enforcement: enforcement(strict), Digest: end.Receipt.Digest, Receipt: end.Receipt.Layers}
}

func enforcement(strict bool) policy.Enforcement {
	if strict {
		return policy.Strict
	}
	return policy.BestEffort
}

func failedProof(strict bool, err error) proof {
	p := proof{Enforcement: enforcement(strict), Receipt: []string{}, Error: &obstacle{Code: runner.SandboxUnavailable, Message: err.Error()}}
	var f *runner.Fault
	if !errors.As(err, &f) {
		return p
	}
	p.Error.Code, p.Error.Message = f.Code, f.Message
	text := func(key string) string {
		s, _ := f.Details[key].(string) // absent where nothing is known to be in the way
		return s
	}
	p.Error.Remedy = sandbox.Remedy{Knob: text("knob"), Show: text("show"), Fix: text("fix")}
	if p.Error.Fix == "" {
		p.Error.Fix = f.Next
	}
	return p
}
