package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"codespace/policy"
	"codespace/sandbox"

	"github.com/spf13/cobra"
)

// diagnosis is what doctor found. docs/doctor.md describes its JSON: a field keeps
// its name and meaning, and new ones may come.
type diagnosis struct {
	Schema        int               `json:"schema"`
	Version       string            `json:"version"`
	CanRun        bool              `json:"can_run"`
	Strength      string            `json:"strength"` // "full", "weaker", "none"
	Kernel        string            `json:"kernel"`
	UID           int               `json:"uid"`
	Layers        []sandbox.Finding `json:"layers"`
	Circumstances []sandbox.Finding `json:"circumstances"`
	Proof         proof             `json:"proof"`
	Tools         []toolset         `json:"tools"`
	ToolFlags     []string          `json:"tool_flags"` // of all tools together
}

const diagnosisSchema = 1

func doctorCommand() *cobra.Command {
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use:                   "doctor [--json] [--strict]",
		DisableFlagsInUseLine: true,
		GroupID:               groupLook,
		Short:                 "Say whether this machine can build the sandbox, and what to change if not",
		Long: `Say whether this machine can build the sandbox, at which strength, what is in the
way and how to change it. Every layer is looked at, and then a real sandbox is
built on a fresh directory in $TMPDIR, the way codespace run does, and the command
true is run in it. Nothing is changed and nothing is left.

Tools on PATH that a sandbox would not see are listed with the flags of run and
mcp that show them.

The exit status is 0 if commands can run, 1 if not.`,
		Example: `  codespace doctor
  codespace doctor --strict    can every limit be enforced, too?
  codespace doctor --json | jq .proof`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return doctor(cmd.OutOrStdout(), asJSON, strict) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object instead of text (docs/doctor.md)")
	cmd.Flags().BoolVar(&strict, "strict", false, "prove it with --strict, as of run: every limit must be enforceable")
	return cmd
}

func doctor(w io.Writer, asJSON, strict bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), heeded(syscall.SIGTERM)...)
	defer stop()
	d, err := diagnose(ctx, strict)
	if err != nil {
		return err
	}
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		err = e.Encode(d)
	} else {
		err = d.print(w)
	}
	if err == nil && !d.CanRun {
		err = status(exitFailure)
	}
	return err
}

// diagnose surveys, proves and looks for tools. The error is that it was
// interrupted: what is in the way of a proof is part of the diagnosis.
func diagnose(ctx context.Context, strict bool) (*diagnosis, error) {
	d := &diagnosis{Schema: diagnosisSchema, Version: version, UID: os.Geteuid(), Kernel: kernelRelease(), Circumstances: []sandbox.Finding{}}
	layers, circumstances := (sandbox.Host{}).Survey()
	d.Layers, d.Circumstances = layers, append(d.Circumstances, circumstances...)
	g, err := newGround()
	if err != nil {
		d.Proof = failedProof(strict, err)
	} else {
		defer g.remove()
		if d.Proof, err = g.prove(ctx, strict); err != nil {
			return nil, err
		}
	}
	d.Tools, d.ToolFlags = g.tools()
	d.CanRun, d.Strength = d.Proof.Ran, d.strength()
	return d, nil
}

func (d *diagnosis) strength() string {
	if !d.Proof.Ran {
		return "none"
	}
	if len(d.reduced()) > 0 {
		return "weaker"
	}
	return "full"
}

// reduced names the layers that are not at full strength.
func (d *diagnosis) reduced() []string {
	var names []string
	for _, l := range d.Layers {
		if l.State == "weaker" || l.State == "missing" {
			names = append(names, l.Name)
		}
	}
	return names
}

func kernelRelease() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

var errInterrupted = errors.New("interrupted before the proof was done")

// remedies are what is in the way, each knob once: of running at all, first what
// stopped the proof, and of full strength.
func (d *diagnosis) remedies() (ofRunning, ofStrength []sandbox.Remedy) {
	seen := map[string]bool{"": true}
	add := func(list *[]sandbox.Remedy, r sandbox.Remedy) {
		if !seen[r.Knob] {
			*list = append(*list, r)
		}
		seen[r.Knob] = true
	}
	if d.Proof.Error != nil {
		add(&ofRunning, d.Proof.Error.Remedy)
	}
	for _, c := range d.Circumstances {
		if c.State == "in the way" {
			add(&ofRunning, c.Remedy)
		}
	}
	for _, l := range d.Layers {
		if l.State == "missing" && !strings.HasPrefix(l.Name, "cgroup ") {
			add(&ofRunning, l.Remedy)
		}
	}
	for _, l := range d.Layers {
		if l.State == "weaker" || l.State == "missing" {
			add(&ofStrength, l.Remedy)
		}
	}
	if d.CanRun {
		return nil, append(ofRunning, ofStrength...)
	}
	return ofRunning, ofStrength
}

// headline is the answer in one sentence.
func (d *diagnosis) headline() string {
	how := ""
	if d.Proof.Enforcement == policy.Strict {
		how = " with --strict"
	}
	switch {
	case !d.CanRun && d.Proof.Error.Knob != "":
		return "Commands CANNOT run here" + how + ". In the way: " + d.Proof.Error.Knob + "."
	case !d.CanRun:
		return "Commands CANNOT run here" + how + ": " + printable(d.Proof.Error.Message) + "."
	case d.Strength == "weaker":
		return fmt.Sprintf("Commands can run here%s, weaker than they could: %s.", how, strings.Join(d.reduced(), ", "))
	}
	return "Commands can run here" + how + ", at full strength."
}
