package mcpserver

import (
	"context"
	"fmt"

	"codespace/gateway"
	"codespace/policy"
	"codespace/runner"
)

// commandBytes bounds an argv, counting one byte for the end of each argument.
const commandBytes = 2 << 20

func execCommand() tool {
	return tool{
		name:  "exec_command",
		title: "Run a command",
		description: "Start a program in a workspace's sandbox, at the workspace root. Answers with a process_id as soon as the program " +
			"runs, without waiting for it to end: go on with read_process and process_status. The process_id is valid while the " +
			"command runs and for 15 minutes after it ended (the 64 ended last per workspace), also after you reconnect, " +
			"and never longer than the server.",
		hints:  hints{destructive: true, openWorld: true},
		input:  execInput,
		output: execOutput,
		codes:  map[string]runner.Code{"command": runner.InvalidCommand},
		run:    runExecCommand,
	}
}

const execInput = `{"type":"object","additionalProperties":false,"required":["workspace_id","command"],"properties":{
"workspace_id":{"type":"string","description":"The workspace to run in; workspace_info lists them."},
"command":{"type":"array","minItems":1,"maxItems":32768,"items":{"type":"string"},
"description":"The program and its arguments, one string each. No shell reads them: for pipes or variables send [\"sh\",\"-c\",\"...\"]."},
"tty":{"type":"boolean","description":"Give it a terminal of 24 rows and 80 columns instead of pipes."},
"access":{"type":"string","enum":["write","read"],"description":"read mounts the workspace read-only and runs beside a writing command; the default is write where the profile allows it."}}}`

const execOutput = `{"type":"object","properties":{
"process_id":{"type":"string"},
"dispatch_status":{"type":"string","description":"confirmed, or unknown if it cannot be told whether the program started: ask process_status and do not start it again."}}}`

func runExecCommand(ctx context.Context, c *call) (reply, error) {
	command := c.arguments.list("command")
	if err := checkCommand(command); err != nil {
		return reply{}, err
	}
	// A client that goes away or changes its mind must not leave a start in doubt.
	d, err := c.gateway.Exec(context.WithoutCancel(ctx), c.principal, gateway.ExecArguments{
		WorkspaceID: c.arguments.text("workspace_id"),
		Command:     command,
		TTY:         c.arguments.boolean("tty"),
		Access:      policy.Access(c.arguments.text("access")),
	})
	if err != nil {
		return reply{}, err
	}
	recordOf(ctx).process = d.ProcessID
	return dispatched(d), nil
}

func checkCommand(command []string) error {
	if command[0] == "" {
		return &runner.Fault{
			Code:    runner.InvalidCommand,
			Message: "command[0] is empty",
			Next:    "name the program to run",
			Details: map[string]any{"argument": "command[0]"},
		}
	}
	total := 0
	for _, argument := range command {
		total += len(argument) + 1
	}
	if total > commandBytes {
		return &runner.Fault{
			Code:    runner.InvalidCommand,
			Message: fmt.Sprintf("command holds %d bytes, more than the limit of %d", total, commandBytes),
			Next:    "pass large data through a file",
			Details: map[string]any{"argument": "command", "limit": commandBytes},
		}
	}
	return nil
}

func dispatched(d gateway.Dispatch) reply {
	header := "process " + d.ProcessID + " started; read its output with read_process"
	if d.Status != "confirmed" {
		header = "process " + d.ProcessID + " may or may not have started; ask process_status and do not start it again"
	}
	return reply{header: header, value: d}
}
