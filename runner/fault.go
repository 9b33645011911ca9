package runner

import "fmt"

// Code is a stable error code of the contract; it crosses process boundaries.
type Code string

const (
	LimitExceeded       Code = "LIMIT_EXCEEDED"
	Unauthorized        Code = "UNAUTHORIZED"
	WorkspaceNotFound   Code = "WORKSPACE_NOT_FOUND"
	WorkspaceBusy       Code = "WORKSPACE_BUSY"
	SandboxUnavailable  Code = "SANDBOX_UNAVAILABLE"
	InvalidArgument     Code = "INVALID_ARGUMENT"
	InvalidCommand      Code = "INVALID_COMMAND"
	ProcessSpawnFailed  Code = "PROCESS_SPAWN_FAILED"
	ProcessLimit        Code = "PROCESS_LIMIT"
	ProcessNotFound     Code = "PROCESS_NOT_FOUND"
	ProcessNotTTY       Code = "PROCESS_NOT_TTY"
	ProcessNotRunning   Code = "PROCESS_NOT_RUNNING"
	PathEscape          Code = "PATH_ESCAPE"
	FileOperationFailed Code = "FILE_OPERATION_FAILED"
	InvalidPatch        Code = "INVALID_PATCH"

	OperationKeyConflict Code = "OPERATION_KEY_CONFLICT"
	OperationNotFound    Code = "OPERATION_NOT_FOUND"
	LedgerUnavailable    Code = "LEDGER_UNAVAILABLE"

	RunnerUnavailable Code = "RUNNER_UNAVAILABLE"
	Internal          Code = "INTERNAL"
)

// Fault is an error with a stable code. Message says what happened and names
// the thing; Next says what to do about it. Details holds facts a program may
// branch on and never a host path outside the workspace.
type Fault struct {
	Code      Code           `json:"code"`
	Message   string         `json:"message"`
	Next      string         `json:"next,omitempty"`
	Retryable bool           `json:"retryable"`
	Details   map[string]any `json:"details,omitempty"`

	OperationID string `json:"operation_id,omitempty"` // of the patch it is about, once that is recorded
}

func (f *Fault) Error() string {
	if f.Next == "" {
		return fmt.Sprintf("%s: %s", f.Code, f.Message)
	}
	return fmt.Sprintf("%s: %s; %s", f.Code, f.Message, f.Next)
}
