package mcpserver

import (
	"encoding/json"
	"fmt"
	"sort"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codespace/runner"
)

// Byte caps: each bounds the JSON of structuredContent and, apart from it, of
// the text block.
const (
	defaultPage = 10_000
	largestPage = 65_536
	smallestCap = 1024 // what a result needs beside its body
)

// reply is the outcome of a tool before it is rendered.
type reply struct {
	header string // one line
	value  any    // becomes structuredContent; marshals to an object
	body   string // of the text block; empty: the fields of value, a line each
	raw    bool   // body is the whole body even if it is empty
}

// rendered is a reply as it goes to the client, twice complete.
type rendered struct {
	structured json.RawMessage
	text       string
}

func (r reply) render() (rendered, error) {
	// json.Marshal escapes as the SDK does on the wire, so lengths taken here hold there.
	structured, err := json.Marshal(r.value)
	if err != nil {
		return rendered{}, fmt.Errorf("cannot encode a result: %w", err)
	}
	if r.raw {
		return rendered{structured, r.header + "\n" + r.body}, nil
	}
	body, err := fieldLines(structured)
	return rendered{structured, r.header + "\n" + body}, err
}

// size is the larger of the two forms in bytes of JSON.
func (r rendered) size() int {
	text, _ := json.Marshal(r.text) // cannot fail for a string
	return max(len(r.structured), len(text))
}

// result renders r; one larger than limit is a bug of its tool.
func (r reply) result(limit int) (*mcp.CallToolResult, error) {
	out, err := r.render()
	if err != nil {
		return nil, err
	}
	if n := out.size(); n > limit {
		return nil, fmt.Errorf("cannot answer with %d bytes: the limit is %d", n, limit)
	}
	return &mcp.CallToolResult{
		StructuredContent: out.structured,
		Content:           []mcp.Content{&mcp.TextContent{Text: out.text}},
	}, nil
}

// longest builds the reply with as many of n items as fit a page.
func longest(n int, build func(items int) reply) reply {
	fits := func(items int) bool {
		out, err := build(items).render()
		return err == nil && out.size() <= defaultPage
	}
	if fits(n) {
		return build(n)
	}
	tooMany := sort.Search(n, func(items int) bool { return !fits(items) })
	return build(max(tooMany-1, 0))
}

// refusal renders a fault as a tool error.
func refusal(f *runner.Fault) *mcp.CallToolResult {
	message := f.Message
	if f.Next != "" {
		message += "; " + f.Next
	}
	message = clip(message, 2000)
	details := f.Details
	if details == nil {
		details = map[string]any{}
	}
	structured, err := errorObject(f, message, details)
	if err != nil || len(structured) > defaultPage {
		structured, _ = errorObject(f, message, scalars(details)) // cannot fail
	}
	return &mcp.CallToolResult{
		IsError:           true,
		StructuredContent: structured,
		Content:           []mcp.Content{&mcp.TextContent{Text: string(f.Code) + ": " + message}},
	}
}

// scalars are the details that are short in any case.
func scalars(details map[string]any) map[string]any {
	short := map[string]any{"truncated": true}
	for name, value := range details {
		switch v := value.(type) {
		case string:
			short[name] = clip(v, 200)
		case bool, int, int64, json.Number:
			short[name] = v
		}
	}
	return short
}

func errorObject(f *runner.Fault, message string, details map[string]any) (json.RawMessage, error) {
	return json.Marshal(struct {
		Code      runner.Code    `json:"code"`
		Message   string         `json:"message"`
		Retryable bool           `json:"retryable"`
		Details   map[string]any `json:"details"`
		Operation string         `json:"operation_id,omitempty"`
	}{f.Code, message, f.Retryable, details, f.OperationID})
}
