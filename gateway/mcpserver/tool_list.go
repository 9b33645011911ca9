package mcpserver

import (
	"context"
	"fmt"

	"codespace/gateway"
	"codespace/runner"
)

func processList() tool {
	return tool{
		name:  "process_list",
		title: "List commands",
		description: "List your running commands and those that ended within 15 minutes, in order of start. Each process_id is valid as " +
			"long as it is listed.",
		hints:  hints{readOnly: true, idempotent: true},
		input:  listInput,
		output: listOutput,
		run:    runProcessList,
	}
}

const listInput = `{"type":"object","additionalProperties":false,"properties":{
"workspace_id":{"type":"string","description":"Only those of this workspace."},
"cursor":{"type":"string","description":"The next_cursor of the last answer."}}}`

const listOutput = `{"type":"object","properties":{
"processes":{"type":"array","description":"process_id, workspace_id, state, tty, started_at and, once exited, how."},
"truncated":{"type":"boolean"},
"processes_total":{"type":"integer","description":"Of the whole list."},
"next_cursor":{"type":"string","description":"Present if there are more."}}}`

type listed struct {
	ProcessID   string             `json:"process_id"`
	Workspace   string             `json:"workspace_id"`
	State       runner.State       `json:"state"`
	TTY         bool               `json:"tty"`
	Started     string             `json:"started_at"`
	Ended       string             `json:"ended_at,omitempty"`
	Termination runner.Termination `json:"termination,omitempty"`
	ExitCode    *int               `json:"exit_code,omitempty"`
	Signal      string             `json:"signal,omitempty"`
}

func runProcessList(ctx context.Context, c *call) (reply, error) {
	page, err := c.gateway.Processes(ctx, c.principal, c.arguments.text("workspace_id"), c.arguments.text("cursor"))
	if err != nil {
		return reply{}, err
	}
	return processes(page), nil
}

func processes(page gateway.Page) reply {
	rows := make([]listed, len(page.Processes))
	for i, p := range page.Processes {
		rows[i] = listed{p.ProcessID, p.Workspace, p.State, p.TTY, stamp(p.Started), stamp(p.Ended), p.Termination, p.ExitCode, p.Signal}
	}
	return longest(len(rows), func(n int) reply {
		cut := page.More || n < len(rows)
		next := ""
		if cut && n > 0 {
			next = page.Processes[n-1].Cursor
		}
		return reply{
			header: fmt.Sprintf("%d of %d processes", n, page.Total),
			value: struct {
				Processes []listed `json:"processes"`
				Truncated bool     `json:"truncated"`
				Total     int      `json:"processes_total"`
				Next      string   `json:"next_cursor,omitempty"`
			}{rows[:n], cut, page.Total, next},
		}
	})
}
