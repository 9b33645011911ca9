// Package runner owns processes for one environment: it starts commands in
// sandboxes, keeps their output, ends them and tells how they ended.
//
// It is the station behind the gateway, reached over a socket (runner/wire). It
// reads the registry itself: a request names a workspace, an access and a policy
// digest, never a root, a mount or a limit, so that a compromised gateway widens
// nothing. Every command gets a cell of its own from the sandbox helper; there is
// no other way to run one.
//
// It promises that a command's tree is gone before the command is shown as
// exited, that no byte of output is lost uncounted, and that no status is
// invented. It promises nothing across its own end: the process table is memory
// only, and what it started ends with it.
package runner

import (
	"time"

	"codespace/policy"
	"codespace/sandbox"
)

// ExecRequest asks for one command. It names a workspace and a policy digest,
// never a root, a mount or a limit: those come from the runner's own registry.
type ExecRequest struct {
	ProcessID string        `json:"process_id"` // minted by the gateway: "proc_" and 32 hex digits
	Workspace string        `json:"workspace_id"`
	Digest    string        `json:"policy_digest"` // of the workspace as the gateway decided it
	Access    policy.Access `json:"access"`
	Argv      []string      `json:"argv"`
	TTY       bool          `json:"tty,omitempty"`      // a pseudo-terminal, 24 by 80, instead of pipes
	Attached  bool          `json:"attached,omitempty"` // three descriptors come with the request: stdin, stdout, stderr
}

// ExecResult confirms that the command's own program has started.
type ExecResult struct {
	Started time.Time       `json:"started"`
	Receipt sandbox.Receipt `json:"receipt"`
	Tree    sandbox.Tree    `json:"tree"`
}

// State of a process: running until its whole tree has ended.
type State string

const (
	Running State = "running"
	Exited  State = "exited"
)

// Termination says how a process ended.
type Termination string

const (
	ByExit      Termination = "exited"
	BySignal    Termination = "signaled"
	ByTimeout   Termination = "timeout"
	ByTerminate Termination = "terminated"
	ByOOM       Termination = "oom"
	Lost        Termination = "lost" // the helper or the cell died first: nothing is known
)

// Usage is what the command and its descendants consumed.
type Usage struct {
	CPU        time.Duration `json:"cpu"`         // user plus system
	PeakMemory int64         `json:"peak_memory"` // bytes
	PIDs       int64         `json:"pids"`        // highest number at once; 0 where it cannot be known
}

// Status is everything known about one process.
type Status struct {
	ProcessID    string          `json:"process_id"`
	Workspace    string          `json:"workspace_id"`
	State        State           `json:"state"`
	TTY          bool            `json:"tty"`
	Termination  Termination     `json:"termination,omitempty"`
	ExitCode     *int            `json:"exit_code,omitempty"`
	Signal       string          `json:"signal,omitempty"` // "SIGKILL"
	SignalNumber int             `json:"signal_number,omitempty"`
	OutputTotal  int64           `json:"output_total"`
	RetainedFrom int64           `json:"output_retained_from"`
	EOF          bool            `json:"eof"`
	Started      time.Time       `json:"started"`
	Ended        time.Time       `json:"ended,omitzero"`
	Usage        Usage           `json:"usage"`
	Receipt      sandbox.Receipt `json:"receipt"`
}

// ReadRequest asks for output from a byte offset on.
type ReadRequest struct {
	ProcessID string        `json:"process_id"`
	Cursor    int64         `json:"cursor"`
	MaxBytes  int           `json:"max_bytes"`
	Wait      time.Duration `json:"wait"`
}

// ReadResult is one chunk of the merged output.
type ReadResult struct {
	Chunk        []byte `json:"-"`      // exact bytes
	Cursor       int64  `json:"cursor"` // of the next byte
	EOF          bool   `json:"eof"`
	Lost         int64  `json:"output_lost"` // bytes between the given cursor and the chunk
	RetainedFrom int64  `json:"retained_from"`
	State        State  `json:"state"`
}
