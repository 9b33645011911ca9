// Command codespace-runner owns processes and sandboxes for one codespace, which
// starts it with its listening socket as descriptor 3 and its settings on stdin.
// It is not meant to be started by hand. Everything it started ends with it, and
// it ends with its gateway.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"codespace/runner"
	"codespace/runner/failpoint"
	"codespace/runner/wire"
)

var version = "unversioned"

func main() {
	// The first thread is kept: the runner gives up threads with the file identity of a
	// workspace's owner, and /proc/self shows this one.
	runtime.LockOSThread()
	if len(os.Args) != 2 || os.Args[1] != "serve" {
		fmt.Fprintln(os.Stderr, "codespace-runner", version+": started by codespace only; use codespace")
		os.Exit(2)
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "codespace-runner:", err)
		os.Exit(1)
	}
}

func serve() error {
	syscall.Umask(0o022)
	if err := failpoint.Open(); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // stderr goes through the gateway and may end first
	settings, err := runner.ReadSettings(os.Stdin)
	if err != nil {
		return err
	}
	registry, err := settings.Registry()
	if err != nil {
		return err
	}
	instance, err := runner.OpenInstance(settings.Instance)
	if err != nil {
		return err
	}
	listener, lifeline, err := wire.Inherited()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find own program: %w", err)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	r := runner.New(registry, runner.Place{
		Helper: filepath.Join(filepath.Dir(self), "codespace-helper"), Patcher: filepath.Join(filepath.Dir(self), "codespace-patch"), Lifeline: lifeline, Instance: instance,
	}, log)
	defer instance.Remove() // if the gateway did not live to do it
	defer r.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	go func() { // a gateway that is gone before it has connected cuts no connection
		lifeline.Read(make([]byte, 1))
		stop()
	}()
	peer := wire.Peer{PID: os.Getppid(), Digest: settings.Digest(registry)}
	err = wire.Serve(ctx, listener, peer, wire.Handler{
		Exec: r.Exec, Read: r.Read, Status: r.Status, Terminate: r.Terminate, Signal: r.Signal,
		Write: r.Write, Resize: r.Resize, List: r.List, Support: r.Support, ReadFile: r.ReadFile, Find: r.Find, Versions: r.Versions,
		PlanPatch: r.PlanPatch, ApplyPatch: r.ApplyPatch, DropPlan: r.DropPlan, SettlePatch: r.SettlePatch, Subscribe: r.Subscribe,
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
