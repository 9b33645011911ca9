package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"codespace/policy"
	"codespace/runner"
)

// ground is what subjects stand on: a registry and the workspace that they use
// where nothing else is said.
type ground struct {
	bin      string
	settings runner.Settings
	registry *policy.Registry
	place
}

// place is a workspace and how a command enters it.
type place struct {
	workspace policy.Workspace
	grant     policy.Grant
}

// grounds are the two: one workspace as codespace run and mcp register it, and
// those of a configuration file.
type grounds struct{ embedded, configured *ground }

// The workspaces of the configuration file.
const (
	crowded = "crowded" // many commands may run in it at once
	retains = "retains" // keeps all that a command prints
	fresh   = 8         // more, fresh-0 and so on, in each of which one sandbox is built
)

func newGrounds(o options, scratch string) (*grounds, error) {
	workspace, home, states := filepath.Join(scratch, "workspace"), filepath.Join(scratch, "home"), filepath.Join(scratch, "state")
	for _, dir := range []string{workspace, home, states} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	environ := map[string]string{"HOME": home, "XDG_STATE_HOME": states}
	embedded, err := newGround(o.bin, runner.Settings{Workspace: workspace, Environ: environ})
	if err != nil {
		return nil, err
	}
	file, err := configuration(scratch, o.output)
	if err != nil {
		return nil, err
	}
	configured, err := newGround(o.bin, runner.Settings{Config: file})
	if err != nil {
		return nil, err
	}
	configured.place, err = configured.enter(crowded, policy.AccessRead)
	return &grounds{embedded, configured}, err
}

func newGround(bin string, settings runner.Settings) (*ground, error) {
	g := &ground{bin: bin, settings: settings}
	var err error
	if g.registry, err = settings.Registry(); err != nil {
		return nil, err
	}
	g.place, err = g.enter(g.registry.IDs()[0], "")
	return g, err
}

// configuration writes a registry file with its workspaces.
func configuration(scratch string, output int64) (file string, err error) {
	var text strings.Builder
	fmt.Fprintf(&text, "[state]\ndir = %q\n", filepath.Join(scratch, "configured"))
	add := func(id, limits string) {
		root := filepath.Join(scratch, id)
		if err == nil {
			err = os.Mkdir(root, 0o700)
		}
		fmt.Fprintf(&text, "[workspaces.%s]\nroot = %q\nprofile = \"workspace-write\"\n", id, root)
		fmt.Fprintf(&text, "[workspaces.%s.limits]\nenforcement = \"best-effort\"\n%s\n", id, limits)
	}
	add(crowded, "processes = 64")
	add(retains, fmt.Sprintf("output = \"%dKiB\"", max(output>>10, 4)))
	for i := range fresh {
		add(fmt.Sprintf("fresh-%d", i), "")
	}
	if err != nil {
		return "", err
	}
	file = filepath.Join(scratch, "registry.toml")
	return file, os.WriteFile(file, []byte(text.String()), 0o600)
}

// enter is the way into a workspace; access "" is the most there is.
func (g *ground) enter(id string, access policy.Access) (place, error) {
	w, ok := g.registry.Workspace(id)
	if !ok {
		return place{}, fmt.Errorf("no workspace %s", id)
	}
	grant, err := policy.Decide(w, policy.Action{Kind: policy.Execute, Access: access})
	return place{w, grant}, err
}

func (g *ground) program(name string) string { return filepath.Join(g.bin, name) }

// codespace is the command that people type, with its state in our scratch.
func (g *ground) codespace(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, g.program("codespace"), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range g.settings.Environ {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}
