package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"codespace/runner"
	"codespace/sandbox"
)

// record is what --json writes: how the command ended, or why it did not start.
// What does not apply is absent.
type record struct {
	ProcessID   string             `json:"process_id,omitempty"`
	WorkspaceID string             `json:"workspace_id,omitempty"`
	Termination runner.Termination `json:"termination,omitempty"`
	ExitCode    *int               `json:"exit_code,omitempty"`
	Signal      string             `json:"signal,omitempty"`
	Started     *time.Time         `json:"started_at,omitempty"`
	Ended       *time.Time         `json:"ended_at,omitempty"`
	Usage       *spent             `json:"usage,omitempty"`
	Receipt     *sandbox.Receipt   `json:"receipt,omitempty"`
	Error       *runner.Fault      `json:"error,omitempty"`
}

type spent struct {
	CPUMillis  int64 `json:"cpu_ms"`
	PeakMemory int64 `json:"peak_memory_bytes"` // 0 where unknown
	PIDs       int64 `json:"pids,omitempty"`    // most at once; absent where unknown
}

func endRecord(s runner.Status) record {
	return record{ProcessID: s.ProcessID, WorkspaceID: s.Workspace, Termination: s.Termination, ExitCode: s.ExitCode, Signal: s.Signal,
		Started: &s.Started, Ended: &s.Ended, Receipt: &s.Receipt,
		Usage: &spent{CPUMillis: s.Usage.CPU.Milliseconds(), PeakMemory: s.Usage.PeakMemory, PIDs: s.Usage.PIDs}}
}

// usage is an error of what was typed.
type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

// errorOf is the error of a record. What has no stable code of its own is of what was
// typed, or of this program and its machine.
func errorOf(err error) *runner.Fault {
	var f *runner.Fault
	var u usage
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &u):
		return &runner.Fault{Code: runner.InvalidArgument, Message: err.Error()}
	}
	return &runner.Fault{Code: runner.Internal, Message: err.Error()}
}

// write writes the record as one line, the last on standard error.
func (r record) write() error {
	b, err := json.Marshal(r)
	if err == nil {
		_, err = fmt.Fprintf(os.Stderr, "%s\n", b)
	}
	return err
}
