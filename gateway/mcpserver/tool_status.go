package mcpserver

import (
	"context"
	"fmt"
	"time"

	"codespace/runner"
)

func processStatus() tool {
	return tool{
		name:  "process_status",
		title: "Ask how a command is doing",
		description: "Tell whether a command runs or how it ended: exit code or signal, output size, times, resource usage and the " +
			"isolation it ran under. A process_id can be asked about while the command runs and for 15 minutes after it ended.",
		hints:  hints{readOnly: true, idempotent: true},
		input:  processInput,
		output: statusOutput,
		run:    runProcessStatus,
	}
}

// processInput is the input of every tool that takes a process and nothing else.
const processInput = `{"type":"object","additionalProperties":false,"required":["process_id"],"properties":{
"process_id":{"type":"string"}}}`

const statusOutput = `{"type":"object","properties":{
"process_id":{"type":"string"},
"workspace_id":{"type":"string"},
"state":{"type":"string","description":"running, or exited once the whole process tree has ended."},
"termination":{"type":"string","description":"Once exited: exited, signaled, timeout, terminated, oom or lost (nothing is known)."},
"exit_code":{"type":"integer","description":"Present only if known."},
"signal":{"type":"string"},
"output_total":{"type":"integer","description":"Bytes written so far."},
"output_retained_from":{"type":"integer","description":"The oldest byte offset that is kept."},
"eof":{"type":"boolean","description":"True if no more output can come."},
"started_at":{"type":"string"},
"ended_at":{"type":"string"},
"usage":{"type":"object","description":"cpu_ms, peak_memory_bytes (of all its processes together where a memory cgroup counts them, else of the largest) and, where known, pids."},
"receipt":{"type":"object","description":"digest and layers of the isolation in force."}}}`

type status struct {
	ProcessID    string             `json:"process_id"`
	Workspace    string             `json:"workspace_id"`
	State        runner.State       `json:"state"`
	Termination  runner.Termination `json:"termination,omitempty"`
	ExitCode     *int               `json:"exit_code,omitempty"`
	Signal       string             `json:"signal,omitempty"`
	OutputTotal  int64              `json:"output_total"`
	RetainedFrom int64              `json:"output_retained_from"`
	EOF          bool               `json:"eof"`
	Started      string             `json:"started_at"`
	Ended        string             `json:"ended_at,omitempty"`
	Usage        usage              `json:"usage"`
	Receipt      receipt            `json:"receipt"`
}

type usage struct {
	CPU        int64 `json:"cpu_ms"`
	PeakMemory int64 `json:"peak_memory_bytes"`
	PIDs       int64 `json:"pids,omitempty"`
}

type receipt struct {
	Digest string   `json:"digest"`
	Layers []string `json:"layers"`
}

func runProcessStatus(ctx context.Context, c *call) (reply, error) {
	st, err := c.gateway.Status(ctx, c.principal, c.arguments.text("process_id"))
	if err != nil {
		return reply{}, err
	}
	recordOf(ctx).workspace = st.Workspace
	return statusReply(st), nil
}

func statusReply(st runner.Status) reply {
	return reply{
		header: fmt.Sprintf("process %s in workspace %s %s", st.ProcessID, st.Workspace, ending(st)),
		value: status{
			ProcessID:    st.ProcessID,
			Workspace:    st.Workspace,
			State:        st.State,
			Termination:  st.Termination,
			ExitCode:     st.ExitCode,
			Signal:       st.Signal,
			OutputTotal:  st.OutputTotal,
			RetainedFrom: st.RetainedFrom,
			EOF:          st.EOF,
			Started:      stamp(st.Started),
			Ended:        stamp(st.Ended),
			Usage:        usage{st.Usage.CPU.Milliseconds(), st.Usage.PeakMemory, st.Usage.PIDs},
			Receipt:      receipt{st.Receipt.Digest, append([]string{}, st.Receipt.Layers...)},
		},
	}
}

// ending says in words how a process ended, or that it has not.
func ending(st runner.Status) string {
	if st.State != runner.Exited {
		return "is running"
	}
	how := map[runner.Termination]string{
		runner.ByExit:      "has exited",
		runner.BySignal:    "was ended by a signal",
		runner.ByTimeout:   "was ended by the time limit",
		runner.ByTerminate: "was terminated on request",
		runner.ByOOM:       "ran out of memory",
		runner.Lost:        "was lost: how it ended is not known",
	}[st.Termination]
	if st.ExitCode != nil {
		how += fmt.Sprintf(" with code %d", *st.ExitCode)
	}
	if st.Signal != "" {
		how += " (" + st.Signal + ")"
	}
	return how
}

// stamp renders a time for a client; no time is no text.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
