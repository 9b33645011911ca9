// Command bench measures how long a command takes, against what the same command
// takes without a sandbox.
//
//	bench [-n N] [-cold N] [-pace D] [-block N] [-sustain D] [-slice D] [-output MIB]
//	      [-files N] [-patched N]
//	      [-tables NAME,...] [-only NAME] [-markdown] [BIN]
//
// BIN is the directory with the four programs. Every figure is to be read
// against the baseline of its own table: the two were taken in turns, in one run,
// by one clock. Absolute times are those of a machine on a day. Nothing here
// passes or fails by a time. docs/benchmarks.md says what each row is, and what
// it is not.
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
	"slices"
	"strings"
	"syscall"
	"time"
)

// gap is the pause between two turns. It is not measured: what the last turn has
// left to be done ends in it, and not in the next.
const gap = 200 * time.Millisecond

type options struct {
	n        int           // commands of each kind in each table
	cold     int           // likewise, where each is dear
	pace     time.Duration // between two commands, in the paced tables
	block    int           // commands of a turn, back to back
	sustain  time.Duration // for which commands per second are counted
	slice    time.Duration // of that, at a time
	output   int64         // bytes that a command prints
	files    int           // that find walks over
	patched  int           // files of the larger patch
	tables   []string      // that are measured; none is all
	only     string        // part of the name of what is measured beside the baseline
	markdown bool
	bin      string
}

// chapters are the tables by the names that -tables takes, in their order.
var chapters = []struct {
	name string
	show func(context.Context, report, options, *grounds) error
}{
	{"exec", warm},
	{"first", first},
	{"stages", stages},
	{"rate", rates},
	{"output", outputs},
	{"memory", memory},
	{"files", lookedAt},
	{"patch", patches},
}

func main() {
	var o options
	flag.IntVar(&o.n, "n", 100, "commands of each kind, paced and again back to back")
	flag.IntVar(&o.cold, "cold", 10, "commands of each kind, where each makes a sandbox or prints much")
	flag.DurationVar(&o.pace, "pace", 20*time.Millisecond, "pause before each paced command")
	flag.IntVar(&o.block, "block", 50, "commands of a turn, back to back")
	flag.DurationVar(&o.sustain, "sustain", 10*time.Second, "for how long commands per second are counted, of each kind")
	flag.DurationVar(&o.slice, "slice", 2*time.Second, "how much of that at a time")
	mib := flag.Int64("output", 256, "MiB that a command prints, at most 1024")
	flag.IntVar(&o.files, "files", 100_000, "files that find walks over")
	flag.IntVar(&o.patched, "patched", 1000, "files of the larger patch, at most 1000")
	tables := flag.String("tables", "", "measure only these, of "+strings.Join(names(), ","))
	flag.StringVar(&o.only, "only", "", "measure only what has this in its name, and the baseline")
	flag.BoolVar(&o.markdown, "markdown", false, "print tables for docs/benchmarks.md")
	flag.Parse()
	o.output = *mib << 20
	if *tables != "" {
		o.tables = strings.Split(*tables, ",")
	}
	if o.bin = "bin"; flag.NArg() > 0 {
		o.bin = flag.Arg(0)
	}
	if flag.NArg() > 1 || !o.sound() {
		flag.Usage()
		os.Exit(2)
	}
	if err := bench(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (o options) sound() bool {
	known := names()
	for _, name := range o.tables {
		if !slices.Contains(known, name) {
			return false
		}
	}
	return o.n > 0 && o.cold > 0 && o.block > 0 && o.slice > 0 && o.sustain > 0 && o.output > 0 && o.files > 0 && o.patched > 0 && o.patched <= 1000 && o.output <= 1<<30
}

func names() (names []string) {
	for _, c := range chapters {
		names = append(names, c.name)
	}
	return names
}

// chosen is the baseline and what is to be measured of the rest.
func (o options) chosen(baseline *subject, of ...*subject) []*subject {
	chosen := []*subject{baseline}
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
	g, err := newGrounds(o, scratch)
	if err != nil {
		return fmt.Errorf("cannot prepare: %w", err)
	}
	r := report{out: out, markdown: o.markdown}
	r.host()
	for _, c := range chapters {
		if len(o.tables) > 0 && !slices.Contains(o.tables, c.name) {
			continue
		}
		if err := c.show(ctx, r, o, g); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	r.say("")
	r.say("load at the end " + load())
	return nil
}

// warm measures commands in a sandbox that stands: paced, so that what is made
// ahead is there, and back to back, so that making it competes.
func warm(ctx context.Context, r report, o options, g *grounds) error {
	runner, err := atRunner(g.embedded)
	if err != nil {
		return err
	}
	defer runner.close()
	mcp, err := overMCP(ctx, g.embedded)
	if err != nil {
		return err
	}
	defer mcp.close()
	helper, err := atHelper(ctx, g.embedded)
	if err != nil {
		return err
	}
	defer helper.close()
	cold := coldAtRunner(g.configured)
	defer cold.close()
	for _, s := range []section{
		{title: fmt.Sprintf("paced, %v before each command", o.pace), n: o.n, block: 1, pace: o.pace, stages: true,
			subjects: o.chosen(baseline(), runner, mcp, cold, helper, bubblewrap())},
		{title: fmt.Sprintf("back to back, in turns of %d", o.block), n: o.n, block: o.block, gap: gap,
			subjects: o.chosen(baseline(), runner, mcp, helper, bubblewrap())},
	} {
		if err := s.show(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// first measures what the first command of a workspace waits for.
func first(ctx context.Context, r report, o options, g *grounds) error {
	s := section{
		title:    "first command of a workspace, the sandbox built for it",
		n:        o.cold,
		block:    1,
		pace:     o.pace,
		stages:   true,
		subjects: o.chosen(baseline(), firstAtRunner(g.embedded), firstAtHelper(g.embedded), runCommand(g.embedded), bubblewrap()),
	}
	return s.show(ctx, r)
}
