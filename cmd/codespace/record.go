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
	Usage       *usage             `json:"usage,omitempty"`
	Receipt     *sandbox.Receipt   `json:"receipt,omitempty"`
	Error       *runner.Fault      `json:"error,omitempty"`
}

type usage struct {
	CPUMillis  int64 `json:"cpu_ms"`
	PeakMemory int64 `json:"peak_memory_bytes"` // 0 where unknown
	PIDs       int64 `json:"pids,omitempty"`    // most at once; absent where unknown
}

func endRecord(s runner.Status) record {
	return record{ProcessID: s.ProcessID, WorkspaceID: s.Workspace, Termination: s.Termination, ExitCode: s.ExitCode, Signal: s.Signal,
		Started: &s.Started, Ended: &s.Ended, Receipt: &s.Receipt,
		Usage: &usage{CPUMillis: s.Usage.CPU.Milliseconds(), PeakMemory: s.Usage.PeakMemory, PIDs: s.Usage.PIDs}}
}

// errorRecord is for a command of which nobody can say that it ran to an end. What
// has no stable code, as a wrong value of a flag, is INVALID_ARGUMENT.
func errorRecord(err error) record {
	var f *runner.Fault
	if !errors.As(err, &f) {
		f = &runner.Fault{Code: runner.InvalidArgument, Message: err.Error()}
	}
	return record{Error: f}
}

// write writes the record as one line, the last on standard error.
func (r record) write() error {
	b, err := json.Marshal(r)
	if err == nil {
		_, err = fmt.Fprintf(os.Stderr, "%s\n", b)
	}
	return err
}
