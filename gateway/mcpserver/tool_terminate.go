package mcpserver

import "context"

func terminateProcess() tool {
	return tool{
		name:  "terminate_process",
		title: "End a command",
		description: "End a command: TERM, a grace period, then KILL of its whole process tree. Ending one that has ended is ok. " +
			"Its process_id stays valid for 15 minutes after the end: read_process and process_status still answer.",
		hints:  hints{destructive: true, idempotent: true},
		input:  processInput,
		output: terminateOutput,
		run:    runTerminateProcess,
	}
}

const terminateOutput = `{"type":"object","properties":{
"ok":{"type":"boolean"},
"process_id":{"type":"string"}}}`

func runTerminateProcess(ctx context.Context, c *call) (reply, error) {
	id := c.arguments.text("process_id")
	// Once asked for, an end is not called off by a client that goes away.
	if err := c.gateway.Terminate(context.WithoutCancel(ctx), c.principal, id); err != nil {
		return reply{}, err
	}
	return terminated(id), nil
}

func terminated(id string) reply {
	return done(id, "process "+id+" has ended or is being ended; process_status tells how")
}

// done is the answer of a tool that has nothing to tell but that it did it.
func done(id, header string) reply {
	return reply{
		header: header,
		value: struct {
			OK        bool   `json:"ok"`
			ProcessID string `json:"process_id"`
		}{true, id},
	}
}
