package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// command is what is run: as little as possible, so that what is measured is the
// running and not the command.
const command = "/bin/true"

// baseline is the command without any sandbox.
func baseline() *subject {
	return &subject{name: "Go os/exec (the baseline)", sample: func(ctx context.Context, w *stopwatch) error {
		err := exec.CommandContext(ctx, command).Run()
		w.lap("started and waited for")
		return err
	}}
}

// bubblewrap is a sandbox of a similar kind, made anew for each command.
func bubblewrap() *subject {
	argv := []string{"--unshare-all", "--ro-bind", "/", "/", command}
	s := &subject{name: "bwrap --unshare-all --ro-bind / /"}
	program, err := exec.LookPath("bwrap")
	if err != nil {
		s.missing = "not installed here"
		return s
	}
	if out, err := exec.Command(program, argv...).CombinedOutput(); err != nil {
		said, _, _ := strings.Cut(string(out), "\n")
		s.missing = fmt.Sprintf("does not work here: %v: %s", err, said)
		return s
	}
	s.sample = func(ctx context.Context, w *stopwatch) error {
		err := exec.CommandContext(ctx, program, argv...).Run()
		w.lap("started and waited for")
		return err
	}
	return s
}

// runCommand is codespace run: three processes and a sandbox for one command.
func runCommand(g *ground) *subject {
	return &subject{name: "codespace run, from nothing to nothing", sample: func(ctx context.Context, w *stopwatch) error {
		err := g.codespace(ctx, "run", "--workspace", g.workspace.Root, "--", command).Run()
		w.lap("started and waited for")
		return err
	}}
}
