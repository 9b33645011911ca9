// Package gateway is the line: it decides whether a registered workspace
// permits an action, takes the workspace's lease and asks the runner.
package gateway

import (
	"context"

	"codespace/policy"
	"codespace/runner"
)

// Principal is who is calling: a stdio client, a peer uid, a token.
type Principal struct {
	Name string // "stdio", "uid:1000", "token:ci"
}

// Gateway answers every tool. Its methods return *runner.Fault for every
// refusal a client can be told about.
type Gateway struct{}

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
	Files         string         `json:"files"`            // "none" until file tools exist
	Process       string         `json:"process"`          // "write", "read"
	TTY           bool           `json:"tty"`
	Serialization string         `json:"serialization"`
	Isolation     []string       `json:"isolation"` // layers in force
	Network       string         `json:"network"`   // how it is enforced
	Enforcement   string         `json:"enforcement"`
	Protected     string         `json:"protected"`
	Lifetimes     string         `json:"lifetimes"`
	Limits        map[string]any `json:"limits"`
}

// ExecArguments are the decided arguments of exec_command.
type ExecArguments struct {
	WorkspaceID string
	Command     []string
}

// Dispatch is the identity of a started command.
type Dispatch struct {
	ProcessID string `json:"process_id"`
	Status    string `json:"dispatch_status"` // "confirmed" or "unknown"
}

// Workspaces lists what p may see, sorted by id.
func (g *Gateway) Workspaces(ctx context.Context, p Principal) ([]Workspace, error) {
	return nil, nil
}

// Workspace describes one workspace with its execution block.
func (g *Gateway) Workspace(ctx context.Context, p Principal, id string) (Workspace, error) {
	return Workspace{}, nil
}

// Exec starts a command.
func (g *Gateway) Exec(ctx context.Context, p Principal, a ExecArguments) (Dispatch, error) {
	return Dispatch{}, nil
}

// Read returns output of a process from a cursor on, waiting at most r.Wait.
func (g *Gateway) Read(ctx context.Context, p Principal, r runner.ReadRequest) (runner.ReadResult, error) {
	return runner.ReadResult{}, nil
}

// Status tells whether a process runs or how it ended.
func (g *Gateway) Status(ctx context.Context, p Principal, processID string) (runner.Status, error) {
	return runner.Status{}, nil
}

// Terminate ends a process: TERM, the workspace's grace, then KILL of its tree.
func (g *Gateway) Terminate(ctx context.Context, p Principal, processID string) error { return nil }
