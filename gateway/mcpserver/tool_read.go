package mcpserver

import (
	"context"
	"time"

	"codespace/runner"
)

func readProcess() tool {
	return tool{
		name:  "read_process",
		title: "Read output",
		description: "Read what a command has written (stdout and stderr as one stream) from a byte offset on. " +
			"With wait_ms it waits for the first new byte. The last part of the output is kept, whether read or not, " +
			"as long as its process_id is valid: while it runs and 15 minutes after it ended. eof is not success: ask process_status.",
		hints:  hints{readOnly: true, idempotent: true},
		input:  readInput,
		output: readOutput,
		run:    runReadProcess,
	}
}

const readInput = `{"type":"object","additionalProperties":false,"required":["process_id"],"properties":{
"process_id":{"type":"string"},
"cursor":{"type":"integer","minimum":0,"description":"Byte offset to read from: 0 (default), then the cursor of the last answer."},
"max_bytes":{"type":"integer","minimum":1,"maximum":65536,"description":"Most bytes to answer with; default 10000."},
"wait_ms":{"type":"integer","minimum":0,"maximum":20000,"description":"How long to wait for output at the cursor; default 0."},
"encoding":{"type":"string","enum":["utf-8","base64"],"description":"utf-8 (default) shows bytes that are not text as U+FFFD; base64 is exact."}}}`

const readOutput = `{"type":"object","properties":{
"state":{"type":"string","description":"running or exited."},
"cursor":{"type":"integer","description":"Where to read next."},
"eof":{"type":"boolean","description":"True if the cursor is the end of all output."},
"output_lost":{"type":"integer","description":"Bytes between your cursor and the chunk that are no longer kept."},
"retained_from":{"type":"integer","description":"The oldest byte offset that is kept."},
"encoding":{"type":"string"},
"chunk":{"type":"string"}}}`

func runReadProcess(ctx context.Context, c *call) (reply, error) {
	p := page{
		process: c.arguments.text("process_id"),
		cursor:  c.arguments.integer("cursor", 0),
		max:     int(c.arguments.integer("max_bytes", defaultPage)),
		wait:    time.Duration(c.arguments.integer("wait_ms", 0)) * time.Millisecond,
		exact:   c.arguments.text("encoding") == "base64",
	}
	ctx, stop := waiting(ctx)
	defer stop()
	got, err := p.fetch(ctx, func(ctx context.Context, r runner.ReadRequest) (runner.ReadResult, error) {
		return c.gateway.Read(ctx, c.principal, r)
	})
	if err != nil {
		return reply{}, err
	}
	return p.show(got), nil
}
