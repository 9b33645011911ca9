package mcpserver

import (
	"context"
	"encoding/base64"
	"fmt"

	"codespace/runner"
)

func writeStdin() tool {
	return tool{
		name:  "write_stdin",
		title: "Give a command input",
		description: "Write to a command's standard input or terminal. A write is accepted whole or refused; what is accepted waits, at " +
			"most 1 MiB, until the command reads it. Its process_id takes input only while the command runs; it stays valid for 15 minutes after the end.",
		hints:  hints{destructive: true, openWorld: true},
		input:  writeInput,
		output: writeOutput,
		run:    runWriteStdin,
	}
}

const writeInput = `{"type":"object","additionalProperties":false,"required":["process_id","data"],"properties":{
"process_id":{"type":"string"},
"data":{"type":"string","maxLength":1398104,"description":"The input; a terminal's Enter is a newline."},
"encoding":{"type":"string","enum":["utf-8","base64"],"description":"Of data; default utf-8."},
"close":{"type":"boolean","description":"No more input after this: end of file, or ^D on a terminal."},
"write_id":{"type":"string","maxLength":128,"description":"Makes a repeat safe: the same id and data are accepted once."}}}`

const writeOutput = `{"type":"object","properties":{
"process_id":{"type":"string"},
"accepted_bytes":{"type":"integer"},
"replayed":{"type":"boolean","description":"True if this write_id was accepted before."}}}`

func runWriteStdin(ctx context.Context, c *call) (reply, error) {
	data, err := inputData(c.arguments)
	if err != nil {
		return reply{}, err
	}
	id := c.arguments.text("process_id")
	// Once sent it is not called off: a client that goes away must not tear it.
	r, err := c.gateway.Write(context.WithoutCancel(ctx), c.principal, runner.WriteRequest{
		ProcessID: id, Data: data, Close: c.arguments.boolean("close"), WriteID: c.arguments.text("write_id"),
	})
	if err != nil {
		return reply{}, err
	}
	return written(id, r), nil
}

func inputData(a arguments) ([]byte, error) {
	if a.text("encoding") != "base64" {
		return []byte(a.text("data")), nil
	}
	data, err := base64.StdEncoding.Strict().DecodeString(a.text("data"))
	if err != nil {
		return nil, &runner.Fault{Code: runner.InvalidArgument, Message: "data is not base64: " + err.Error(),
			Next: "send standard base64 with padding", Details: map[string]any{"argument": "data"}}
	}
	return data, nil
}

func written(id string, r runner.WriteResult) reply {
	header := fmt.Sprintf("process %s: %d bytes accepted", id, r.Accepted)
	if r.Replayed {
		header = fmt.Sprintf("process %s: %d bytes were accepted before", id, r.Accepted)
	}
	return reply{header: header, value: struct {
		ProcessID string `json:"process_id"`
		runner.WriteResult
	}{id, r}}
}
