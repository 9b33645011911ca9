package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"codespace/policy"
	"codespace/runner"
)

// ground is what all subjects stand on: one workspace, registered as codespace
// run would.
type ground struct {
	bin       string
	settings  runner.Settings
	registry  *policy.Registry
	workspace policy.Workspace
	grant     policy.Grant
}

func newGround(bin, scratch string) (*ground, error) {
	g := &ground{bin: bin, settings: runner.Settings{
		Workspace: filepath.Join(scratch, "workspace"),
		Environ:   map[string]string{"HOME": filepath.Join(scratch, "home"), "XDG_STATE_HOME": filepath.Join(scratch, "state")},
	}}
	for _, dir := range []string{g.settings.Workspace, g.settings.Environ["HOME"], g.settings.Environ["XDG_STATE_HOME"]} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	var err error
	if g.registry, err = g.settings.Registry(); err != nil {
		return nil, err
	}
	g.workspace, _ = g.registry.Workspace(g.registry.IDs()[0]) // there is exactly one
	g.grant, err = policy.Decide(g.workspace, policy.Action{Kind: policy.Execute})
	return g, err
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
