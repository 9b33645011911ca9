package mcpserver

import (
	"context"
	"fmt"

	"codespace/gateway"
)

func processResize() tool {
	return tool{
		name:  "process_resize",
		title: "Resize a terminal",
		description: "Change the size of the terminal of a running command that was started with tty. " +
			"Its process_id takes a size only while the command runs; it stays valid for 15 minutes after the end.",
		hints:  hints{idempotent: true},
		input:  resizeInput,
		output: terminateOutput,
		run:    runProcessResize,
	}
}

const resizeInput = `{"type":"object","additionalProperties":false,"required":["process_id","rows","cols"],"properties":{
"process_id":{"type":"string"},
"rows":{"type":"integer","minimum":1,"maximum":65535},
"cols":{"type":"integer","minimum":1,"maximum":65535}}}`

func runProcessResize(ctx context.Context, c *call) (reply, error) {
	id, rows, cols := c.arguments.text("process_id"), int(c.arguments.integer("rows", 0)), int(c.arguments.integer("cols", 0))
	if err := c.gateway.Resize(ctx, c.principal, gateway.Resize{ProcessID: id, Rows: rows, Cols: cols}); err != nil {
		return reply{}, err
	}
	return resized(id, rows, cols), nil
}

func resized(id string, rows, cols int) reply {
	return done(id, fmt.Sprintf("the terminal of process %s has %d rows and %d columns", id, rows, cols))
}
