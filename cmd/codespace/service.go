package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"codespace/gateway"
	"codespace/ledger"
	"codespace/policy"
	"codespace/runner"
	"codespace/runner/wire"
)

// service is a gateway with its runner, embedded in this process.
type service struct {
	*gateway.Gateway
	registry *policy.Registry
	instance *runner.Instance
	state    *os.File // locked while a configuration file is served
}

// open loads the registry and makes ready what the first command will need.
func open(s runner.Settings, log *slog.Logger) (*service, error) {
	registry, err := s.Registry()
	if err != nil {
		return nil, usage{err}
	}
	v := &service{registry: registry}
	if v.state, err = openState(registry.State.Dir, s.Config != ""); err != nil {
		return nil, err
	}
	if v.instance, err = runner.NewInstance(); err != nil {
		return nil, err
	}
	s.Instance = v.instance.Dir()
	program, err := runnerProgram(s, registry, v.instance)
	if err != nil {
		v.instance.Remove()
		return nil, err
	}
	v.Gateway = gateway.New(registry, func(ctx context.Context, onEnded func(runner.Ended)) (*wire.Child, error) {
		p := program
		p.OnEnded = onEnded
		return wire.Spawn(ctx, p)
	}, v.openLedger, log)
	return v, nil
}

func (v *service) openLedger(ctx context.Context) (*ledger.Ledger, error) {
	return ledger.Open(ctx, v.registry.State.Dir)
}

// settle brings to an end what an earlier codespace left in the middle of a patch,
// before anybody is served. A ledger that is not there has nothing in it.
func (v *service) settle(ctx context.Context, log *slog.Logger) {
	if !ledger.Exists(v.registry.State.Dir) {
		return
	}
	if err := v.Recover(ctx); err != nil {
		log.Error("not everything in the ledger could be settled", "error", err)
	}
}

// close ends every command, the runner and the run directory.
func (v *service) close() {
	v.Gateway.Close()
	v.instance.Remove()
	v.state.Close()
}

func runnerProgram(s runner.Settings, registry *policy.Registry, in *runner.Instance) (wire.Program, error) {
	self, err := os.Executable()
	if err != nil {
		return wire.Program{}, fmt.Errorf("cannot find own program: %w", err)
	}
	stdin, err := s.Encode()
	return wire.Program{
		Path: filepath.Join(filepath.Dir(self), "codespace-runner"), Args: []string{"serve"}, Dir: in.SocketDir(),
		Digest: s.Digest(registry), Stdin: stdin, Stderr: io.Writer(os.Stderr),
	}, err
}

// openState makes the state directory. One served from a configuration file
// belongs to one process at a time; embedded ones are shared.
func openState(dir string, exclusive bool) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make state directory %s: %w; set state.dir or XDG_STATE_HOME to a directory you may write", dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock state directory: %w", err)
	}
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot use state directory %s: another codespace holds it; end that one or give this one another state.dir", dir)
	}
	return f, nil
}
