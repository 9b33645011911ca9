package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"codespace/gateway"
	"codespace/policy"
	"codespace/runner"

	"github.com/spf13/cobra"
)

type runFlags struct {
	embedded
	json     bool
	noWait   bool
	readOnly bool
	record   record
}

func runCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:     "run [-w DIR] [flags] -- COMMAND [ARGUMENT...]",
		GroupID: groupRun,
		Short:   "Run one command in a sandbox",
		Long: `Run one command in a sandbox on a workspace. Standard streams and signals are
passed through. When standard input is a terminal the command gets one of its
own, which follows the size of yours.

One command at a time may change a workspace: another waits, at most --timeout.
--read-only commands run beside it.

The exit status is the command's own, or
  124    the time limit ended it
  125    usage, no sandbox, or it is not known how the command ended
  126    the command is not executable
  127    the command was not found in the sandbox
  128+n  signal n ended it`,
		Example: `  codespace run -- make test
  codespace run -w ~/project --read-only -- grep -rn TODO .
  codespace run --timeout 2m --memory 512MiB --strict -- ./untrusted
  codespace run --mount ~/.pyenv --env PATH -- python script.py`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, argv []string) error { return flags.conclude(run(cmd, &flags, argv)) },
	}
	flags.register(cmd)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		ours := os.Args
		if end := slices.Index(ours, "--"); end >= 0 {
			ours = ours[:end]
		}
		flags.json = slices.Contains(ours, "--json") // it may stand behind what is wrong
		return flags.conclude(usage{err})
	})
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().BoolVar(&flags.json, "json", false, "at the end, write how the command ended or why it did not start as one line of JSON to standard error")
	cmd.Flags().BoolVar(&flags.readOnly, "read-only", false, "mount the workspace read-only; runs beside a command that changes it")
	cmd.Flags().BoolVar(&flags.noWait, "no-wait", false, "exit 125 instead of waiting for another command to end")
	cmd.Flags().Var(network{}, "network", "what the command may reach; the one `KIND` so far has loopback only")
	section(cmd, "Workspace", "read-only", "no-wait")
	section(cmd, "What commands see", "network")
	section(cmd, "Output", "json")
	return cmd
}

func run(cmd *cobra.Command, flags *runFlags, argv []string) error {
	if len(argv) == 0 {
		return usage{errors.New("cannot run: no command given; use codespace run -w DIR -- COMMAND")}
	}
	signal.Ignore(syscall.SIGPIPE) // the command is told instead, by its own pipe
	settings, err := flags.settings(cmd)
	if err != nil {
		return usage{err}
	}
	v, err := open(settings, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		return err
	}
	defer v.close()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, heeded(syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)...)
	r := &oneRun{service: v, flags: flags, argv: argv, workspace: v.registry.IDs()[0], signals: signals}
	return r.run()
}

// oneRun is one command of codespace run.
type oneRun struct {
	*service
	flags     *runFlags
	argv      []string
	workspace string
	signals   chan os.Signal
}

var cli = gateway.Principal{Name: "cli"}

func (r *oneRun) run() error {
	streams, err := openStreams()
	if err != nil {
		return err
	}
	d, err := r.start(streams)
	if err != nil {
		return err
	}
	if d.Status == "unknown" {
		return &runner.Fault{Code: runner.SandboxUnavailable, Message: "the sandbox was lost; it is not known whether the command ran"}
	}
	r.warn(d.Receipt)
	restore, err := r.terminal(d.ProcessID)
	if err != nil {
		return err
	}
	defer restore()
	streams.started()
	go r.passSignals(d.ProcessID)
	end, err := r.Wait(context.Background(), cli, d.ProcessID)
	if err != nil {
		return fmt.Errorf("the command was lost: %w", err)
	}
	r.flags.record = endRecord(end)
	if err := streams.drain(); err != nil {
		return err
	}
	restore()
	return endStatus(end, r.flags.timeout)
}

// start starts the command, waiting for the workspace while another changes it.
func (r *oneRun) start(s *streams) (gateway.Dispatch, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if r.flags.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, r.flags.timeout)
		defer cancel()
	}
	note := sync.OnceValue(func() *time.Timer {
		return time.AfterFunc(time.Second, func() { fmt.Fprintln(os.Stderr, "codespace: waiting for another command to end") })
	})
	defer func() { note().Stop() }()
	for {
		d, err := r.Exec(ctx, cli, r.arguments(s))
		var f *runner.Fault
		if !errors.As(err, &f) || f.Code != runner.WorkspaceBusy || r.flags.noWait {
			return d, err
		}
		note()
		stop := r.await(ctx)
		if stop != nil && ctx.Err() == nil { // a signal
			return d, errors.Join(stop, err)
		}
		if stop != nil {
			return d, err
		}
	}
}

func (r *oneRun) arguments(s *streams) gateway.ExecArguments {
	a := gateway.ExecArguments{WorkspaceID: r.workspace, Command: r.argv, TTY: onTerminal(), Files: s.theirs[:]}
	if r.flags.readOnly {
		a.Access = policy.AccessRead
	}
	return a
}

// await waits for the lease; the error says why to give up.
func (r *oneRun) await(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	free := make(chan error, 1)
	go func() { free <- r.AwaitLease(ctx, r.workspace) }()
	select {
	case err := <-free:
		return err
	case s := <-r.signals:
		return status(exitSignal + int(s.(syscall.Signal)))
	}
}

func (r *oneRun) passSignals(id string) {
	for s := range r.signals {
		if s == syscall.SIGHUP && terminalGone() { // nobody is left to see or to end it
			r.Terminate(context.Background(), cli, id)
		}
		r.Signal(context.Background(), cli, id, int(s.(syscall.Signal)))
	}
}

// warn says once what this host cannot enforce.
func (r *oneRun) warn(layers []string) {
	for _, l := range layers {
		if strings.Contains(l, "not enforced") {
			fmt.Fprintln(os.Stderr, "codespace: best-effort:", l, "(--strict refuses instead)")
		}
	}
}

// conclude says what went wrong and writes the record behind it, the last line. The
// error is the exit status.
func (f *runFlags) conclude(err error) error {
	var s status
	said := errors.As(err, &s)
	if err != nil && !said {
		fmt.Fprintln(os.Stderr, "codespace:", err)
		s = startStatus(err)
	}
	if !f.json {
		return statusOrNil(s)
	}
	if err != nil && (!said || f.record.Termination == "") {
		f.record.Error = errorOf(err)
	}
	return errors.Join(statusOrNil(s), f.record.write())
}

func statusOrNil(s status) error {
	if s == 0 {
		return nil
	}
	return s
}

// startStatus is the exit status of a command that did not start.
func startStatus(err error) status {
	var f *runner.Fault
	switch {
	case !errors.As(err, &f) || f.Code != runner.ProcessSpawnFailed:
		return exitSandbox
	case f.Details["reason"] == "not found":
		return exitNoEntry
	}
	return exitNoExec
}

func endStatus(s runner.Status, limit time.Duration) error {
	code := exitSandbox
	switch {
	case s.Termination == runner.ByTimeout:
		fmt.Fprintln(os.Stderr, "codespace: the time limit of", limit, "ended the command")
		code = exitTimeout
	case s.Termination == runner.ByOOM:
		fmt.Fprintln(os.Stderr, "codespace: the memory limit ended the command")
		code = exitSignal + int(syscall.SIGKILL)
	case s.ExitCode != nil:
		code = *s.ExitCode
	case s.Signal != "":
		code = exitSignal + s.SignalNumber
	default:
		fmt.Fprintln(os.Stderr, "codespace: the sandbox was lost; how the command ended is not known")
	}
	return statusOrNil(status(code))
}
