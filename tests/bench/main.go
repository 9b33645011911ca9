// Command bench measures how long a command takes, against what the same command
// takes without a sandbox.
//
//	bench [-n N] [-cold N] [-pace D] [-only NAME] [BIN]
//
// BIN is the directory with the three programs. Every figure is to be read
// against the baseline of its own table, Go's os/exec of the same command: the
// two were taken in turns, in one run, by one clock. Absolute times are those of
// a machine on a day. Nothing here passes or fails by a time.
//
// What is measured is what a caller waits for, from its request until it knows
// how the command ended. The client of MCP is a few lines that write and read
// JSON, so that the figures are the server's and not some client's.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// block is how many commands of a kind follow each other back to back.
const block = 10

type options struct {
	n    int           // commands of each kind in each table
	cold int           // likewise, where each needs a new sandbox
	pace time.Duration // between two commands, in the paced table
	only string        // part of the name of what is measured beside the baseline
	bin  string
}

func main() {
	var o options
	flag.IntVar(&o.n, "n", 100, "commands of each kind, paced and again back to back")
	flag.IntVar(&o.cold, "cold", 10, "commands of each kind, each with everything made anew")
	flag.DurationVar(&o.pace, "pace", 20*time.Millisecond, "pause before each paced command")
	flag.StringVar(&o.only, "only", "", "measure only what has this in its name, and the baseline")
	flag.Parse()
	if o.bin = "bin"; flag.NArg() > 0 {
		o.bin = flag.Arg(0)
	}
	if flag.NArg() > 1 || o.n < 1 || o.cold < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := bench(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// chosen is the baseline and what is to be measured of the rest.
func (o options) chosen(of ...*subject) []*subject {
	chosen := []*subject{baseline()}
	for _, s := range of {
		if strings.Contains(s.name, o.only) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

func bench(out io.Writer, o options) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "codespace-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	g, err := newGround(o.bin, scratch)
	if err != nil {
		return fmt.Errorf("cannot prepare: %w", err)
	}
	fmt.Fprint(out, host())
	if err := warm(ctx, out, o, g); err != nil {
		return err
	}
	first := section{
		title:    "first command of a workspace, the sandbox built for it",
		n:        o.cold,
		block:    1,
		pace:     o.pace,
		stages:   true,
		subjects: o.chosen(firstAtRunner(g), firstAtHelper(g), runCommand(g), bubblewrap()),
	}
	if err := first.show(ctx, out); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nload at the end %s\n", load())
	return nil
}

// warm measures commands in a sandbox that stands: paced, so that what is made
// ahead is there, and back to back, so that making it competes.
func warm(ctx context.Context, out io.Writer, o options, g *ground) error {
	runner, err := atRunner(g)
	if err != nil {
		return err
	}
	defer runner.close()
	mcp, err := overMCP(ctx, g)
	if err != nil {
		return err
	}
	defer mcp.close()
	cell, err := atHelper(ctx, g)
	if err != nil {
		return err
	}
	defer cell.close()
	subjects := o.chosen(runner, mcp, cell, bubblewrap())
	for _, s := range []section{
		{title: fmt.Sprintf("paced, %v before each command", o.pace), n: o.n, block: 1, pace: o.pace, stages: true, subjects: subjects},
		{title: fmt.Sprintf("back to back, in turns of %d", block), n: o.n, block: block, subjects: subjects},
	} {
		if err := s.show(ctx, out); err != nil {
			return err
		}
	}
	return nil
}
