// Package policy is the operator's registry and the decisions that follow from it.
//
// It is the second station of the line: the gateway asks Decide whether a
// registered workspace permits an action, the runner reads the same registry to
// learn what a sandbox may hold. Both are pure: after Load or Embedded has read
// the configuration nothing here touches the disk again, and no argument of a
// client reaches a decision except the workspace's id and an access that can
// only be lowered.
//
// It promises that a missing, empty or unknown setting never means "allow". It
// does not enforce anything: that is the sandbox's work.
package policy

import "time"

// Access says what a command may do to its workspace.
type Access string

const (
	AccessRead  Access = "read"  // the workspace is mounted read-only
	AccessWrite Access = "write" // the workspace is mounted read-write
)

// Network says what a sandbox can reach.
type Network string

const (
	NetworkRestricted Network = "restricted" // loopback of its own, nothing else
	NetworkEnabled    Network = "enabled"    // brokered egress
)

// Approvals says which actions of a workspace wait for a person.
type Approvals string

const (
	ApprovalsOff      Approvals = "off"
	ApprovalsConfirm  Approvals = "confirm"
	ApprovalsOperator Approvals = "operator"
)

// Enforcement says what happens where this host cannot enforce a limit.
type Enforcement string

const (
	Strict     Enforcement = "strict"      // refuse to run
	BestEffort Enforcement = "best-effort" // run, and say so in the receipt
)

// Kind is the kind of an environment.
type Kind string

const (
	KindHost      Kind = "host"
	KindContainer Kind = "container"
	KindRemote    Kind = "remote"
)

// Environment is an operator-selected execution location. Never a tool argument.
type Environment struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
}

// Mount is a read-only view of a host directory or file inside the sandbox, at
// the same path.
type Mount struct {
	Path string `json:"path"` // canonical absolute host path
}

// Cache is a private writable directory of one workspace that outlives a
// command and a sandbox.
type Cache struct {
	Name   string `json:"name"`   // [a-z0-9][a-z0-9._-]*, at most 64 bytes
	Target string `json:"target"` // absolute path inside the sandbox
}

// Limits bound one workspace. Zero Wall means no time limit, zero Grace kills at
// once; no other zero is ever produced by Load or Embedded. Bounds: limits.go.
type Limits struct {
	Wall      time.Duration `json:"wall"`       // default 10m
	Grace     time.Duration `json:"grace"`      // TERM to KILL, default 2s
	Memory    int64         `json:"memory"`     // bytes per command, default 2 GiB
	PIDs      int64         `json:"pids"`       // processes and threads per command, default 512
	Processes int           `json:"processes"`  // live commands per workspace, default 8
	Output    int64         `json:"output"`     // bytes retained per command, default 1 MiB
	OpenFiles int64         `json:"open_files"` // RLIMIT_NOFILE, default 1024
	FileSize  int64         `json:"file_size"`  // bytes of a file to hash or scan, default 64 MiB
}

// Workspace is one registered root directory with everything decided about it:
// profile, environment and defaults are already merged in.
type Workspace struct {
	ID          string            `json:"workspace_id"`
	Root        string            `json:"root"` // canonical absolute path
	Environment Environment       `json:"environment"`
	Profile     string            `json:"profile"` // its name, for people
	Access      Access            `json:"access"`  // the most the profile permits
	Network     Network           `json:"network"`
	Approvals   Approvals         `json:"approvals"`
	Protected   []string          `json:"protected"` // workspace-relative patterns
	Mounts      []Mount           `json:"mounts"`
	Caches      []Cache           `json:"caches"`
	Devices     []string          `json:"devices"`
	Variables   map[string]string `json:"variables"` // added to the fixed environment
	Debug       bool              `json:"debug"`     // permits ptrace inside the sandbox
	Identity    string            `json:"identity"`  // "mapped" (default) or "owner"
	Limits      Limits            `json:"limits"`
	Enforcement Enforcement       `json:"enforcement"`
}
