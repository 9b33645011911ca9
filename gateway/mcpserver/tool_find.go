package mcpserver

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

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
"paths":{"type":"array","description":"Relative to the workspace."},
"truncated":{"type":"boolean","description":"There is, or may be, more."},
"reason":{"type":"string","description":"Which limit cut the page: paths, entries, time, depth or length."},
"directories_skipped":{"type":"integer","description":"Not entered: mounts, or not readable."},
"paths_not_utf8":{"type":"integer","description":"Found and not listed: no argument could name them. A command can."},
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
		fit := len(shown.Paths) + shown.Unnamed
		if fit == len(got.Paths) {
			return r, nil
		}
		// The cursor of a shorter page is told by a shorter search.
		req.Limit = max(fit, 1)
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
	Unnamed   int      `json:"paths_not_utf8,omitempty"`
	Next      string   `json:"next_cursor,omitempty"`
}

func found(got files.FindResult, n int) reply {
	s := foundShown{Paths: []string{}, Truncated: got.Truncated, Reason: got.Reason, Skipped: got.Skipped, Next: got.Next}
	var body strings.Builder
	for _, p := range got.Paths[:n] {
		if !utf8.ValidString(p) { // shown in any way it would name another file, or none
			s.Unnamed++
			continue
		}
		s.Paths = append(s.Paths, p)
		fmt.Fprintln(&body, oneLine(p))
	}
	more := "no more"
	switch {
	case s.Next != "":
		more = "more at cursor " + s.Next
	case s.Truncated:
		more = "not everything was looked at"
	}
	if s.Truncated && s.Reason != "" {
		more += " (cut by the limit on " + s.Reason + ")"
	}
	if s.Unnamed > 0 {
		more += fmt.Sprintf("; %d paths are not UTF-8 and not shown", s.Unnamed)
	}
	if s.Skipped > 0 {
		more += fmt.Sprintf("; %d directories not entered", s.Skipped)
	}
	return reply{header: fmt.Sprintf("%d paths; %s", len(s.Paths), more), value: s, body: strings.TrimSuffix(body.String(), "\n"), raw: true}
}
