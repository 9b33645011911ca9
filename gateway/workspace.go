package gateway

import (
	"context"
	"strings"

	"codespace/policy"
	"codespace/runner"
	"codespace/runner/patching"
)

// Workspace is what a client may know about one workspace.
type Workspace struct {
	ID          string           `json:"workspace_id"`
	Profile     string           `json:"profile"`
	Network     policy.Network   `json:"network"`
	Approvals   policy.Approvals `json:"approvals"`
	Environment string           `json:"environment"` // "host"
	Execution   *Execution       `json:"execution,omitempty"`
}

// Execution is what is permitted times what the environment supports.
type Execution struct {
	Available     bool           `json:"available"`
	Reason        string         `json:"reason,omitempty"` // why not available
	Files         string         `json:"files"`            // "read": read, find and version; "write": apply_patch too
	Process       string         `json:"process"`          // "write", "read"
	TTY           bool           `json:"tty"`
	Stdin         string         `json:"stdin"`
	Serialization string         `json:"serialization"`
	Isolation     []string       `json:"isolation"` // layers in force
	Network       string         `json:"network"`   // how it is enforced
	Enforcement   string         `json:"enforcement"`
	Protected     string         `json:"protected"`
	Lifetimes     string         `json:"lifetimes"`
	Limits        map[string]any `json:"limits"`
}

// workspace finds a registered workspace that p may see.
func (g *Gateway) workspace(_ Principal, id string) (policy.Workspace, error) {
	w, ok := g.registry.Workspace(id)
	if ok {
		return w, nil
	}
	return w, &runner.Fault{Code: runner.WorkspaceNotFound, Message: "no such workspace",
		Next: "call workspace_info without arguments for the ids: " + strings.Join(g.registry.IDs(), ", ")}
}

// Workspaces lists what p may see, sorted by id.
func (g *Gateway) Workspaces(ctx context.Context, p Principal) ([]Workspace, error) {
	var all []Workspace
	for _, id := range g.registry.IDs() {
		if w, err := g.workspace(p, id); err == nil {
			all = append(all, describe(w))
		}
	}
	return all, nil
}

// Workspace describes one workspace with its execution block. Its sandbox is
// built if it does not stand, so that the block says what is really in force.
func (g *Gateway) Workspace(ctx context.Context, p Principal, id string) (Workspace, error) {
	w, err := g.workspace(p, id)
	if err != nil {
		return Workspace{}, err
	}
	out := describe(w)
	out.Execution = execution(w, g.support(ctx, w))
	return out, nil
}

func (g *Gateway) support(ctx context.Context, w policy.Workspace) runner.Support {
	if _, err := policy.Decide(w, policy.Action{Kind: policy.Execute}); err != nil {
		return runner.Support{Reason: err.Error()}
	}
	child, err := g.runner(ctx)
	if err != nil {
		return runner.Support{Reason: err.Error()}
	}
	s, err := child.Client.Support(ctx, w.ID)
	if err != nil {
		return runner.Support{Reason: fault(err, runner.Internal).Error()}
	}
	return s
}

func describe(w policy.Workspace) Workspace {
	return Workspace{ID: w.ID, Profile: w.Profile, Network: w.Network, Approvals: w.Approvals, Environment: w.Environment.Name}
}

func execution(w policy.Workspace, s runner.Support) *Execution {
	l := w.Limits
	return &Execution{
		Available: s.Available, Reason: s.Reason, Files: string(w.Access), Process: string(w.Access), TTY: s.Available, Stdin: "open pipe or terminal, 1 MiB ahead of the command",
		Serialization: "one writing command or patch at a time; commands with access read run beside it",
		Isolation:     s.Layers, Network: s.Network, Enforcement: string(w.Enforcement),
		Protected: "apply_patch refuses them; a command is not kept from them yet and can write .git/hooks and other files that host tools run later",
		Lifetimes: "/tmp and $HOME are shared by the workspace's commands and end with its sandbox; /dev/shm ends with each command; caches stay",
		Limits: map[string]any{"wall_ms": l.Wall.Milliseconds(), "grace_ms": l.Grace.Milliseconds(), "memory_bytes": l.Memory, "pids": l.PIDs,
			"processes": l.Processes, "output_bytes": l.Output, "open_files": l.OpenFiles,
			"patch_bytes": patching.MaxBytes, "patch_files": patching.MaxFiles, "file_bytes": patching.MaxFileBytes},
	}
}
