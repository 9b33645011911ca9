package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"codespace/runner"
	"codespace/runner/files"
)

func findFiles() tool {
	return tool{
		name:  "find",
		title: "Find files",
		description: "List the paths of a workspace that match a glob, sorted by their bytes, a page at a time: files, links and special files, " +
			"no directories. Links are not followed. A next_cursor is good for the same glob at any time later.",
		hints:  hints{readOnly: true, idempotent: true},
		input:  findInput,
		output: findOutput,
		run:    runFind,
	}
}

const findInput = `{"type":"object","additionalProperties":false,"required":["workspace_id"],"properties":{
"workspace_id":{"type":"string"},
"glob":{"type":"string","description":"With ** for any directories, * ? [a-z] {a,b} within a name; default all. Example: src/**/*.go"},
"cursor":{"type":"string","description":"The next_cursor of the last answer."},
"limit":{"type":"integer","minimum":1,"maximum":10000,"description":"Most paths of a page; default: what fits."}}}`

const findOutput = `{"type":"object","properties":{
"paths":{"type":"array","description":"Relative to the workspace. What is not UTF-8 shows U+FFFD."},
"truncated":{"type":"boolean","description":"There is, or may be, more."},
"reason":{"type":"string","description":"Which limit cut the page: paths, entries, time, depth or length."},
"directories_skipped":{"type":"integer","description":"Not entered: mounts, or not readable."},
"next_cursor":{"type":"string","description":"Present if the search can go on."}}}`

// firstAsk is how many paths surely fill a page of the default size.
const firstAsk = 1000

func runFind(ctx context.Context, c *call) (reply, error) {
	a := c.arguments
	req := files.FindRequest{Workspace: a.text("workspace_id"), Glob: a.text("glob"), Cursor: a.text("cursor"), Limit: min(int(a.integer("limit", firstAsk)), firstAsk)}
	for {
		got, err := c.gateway.Find(ctx, c.principal, req)
		if err != nil {
			return reply{}, err
		}
		r := longest(len(got.Paths), func(n int) reply { return found(got, n) })
		shown := r.value.(foundShown)
		if len(shown.Paths) == len(got.Paths) {
			return r, nil
		}
		// The cursor of a shorter page is told by a shorter search.
		req.Limit = max(len(shown.Paths), 1)
		if len(got.Paths) == 1 {
			return reply{}, &runner.Fault{Code: runner.FileOperationFailed, Message: "a path is longer than a page", Next: "narrow the glob"}
		}
	}
}

type foundShown struct {
	Paths     []string `json:"paths"`
	Truncated bool     `json:"truncated"`
	Reason    string   `json:"reason,omitempty"`
	Skipped   int      `json:"directories_skipped,omitempty"`
	Next      string   `json:"next_cursor,omitempty"`
}

func found(got files.FindResult, n int) reply {
	s := foundShown{Paths: make([]string, n), Truncated: got.Truncated, Reason: got.Reason, Skipped: got.Skipped, Next: got.Next}
	var body strings.Builder
	for i, p := range got.Paths[:n] {
		s.Paths[i] = strings.ToValidUTF8(p, "\uFFFD")
		fmt.Fprintln(&body, oneLine(s.Paths[i]))
	}
	more := "no more"
	if s.Next != "" {
		more = "more at cursor " + s.Next
	}
	if s.Truncated && s.Reason != "" {
		more += " (cut by the limit on " + s.Reason + ")"
	}
	if s.Skipped > 0 {
		more += fmt.Sprintf("; %d directories not entered", s.Skipped)
	}
	return reply{header: fmt.Sprintf("%d paths; %s", n, more), value: s, body: strings.TrimSuffix(body.String(), "\n"), raw: true}
}
