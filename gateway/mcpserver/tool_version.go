package mcpserver

import (
	"context"
	"fmt"
	"strconv"

	"codespace/runner"
	"codespace/runner/files"
)

func fileVersions() tool {
	return tool{
		name:  "version",
		title: "Ask for versions",
		description: "Tell what stands at each of some paths: the version (sha256 of the content) of a regular file, absent, or the kind of what is " +
			"no regular file. Links are not followed. A version is good until the file changes.",
		hints:  hints{readOnly: true, idempotent: true},
		input:  versionInput,
		output: versionOutput,
		run:    runVersions,
	}
}

const versionInput = `{"type":"object","additionalProperties":false,"required":["workspace_id","paths"],"properties":{
"workspace_id":{"type":"string"},
"paths":{"type":"array","minItems":1,"maxItems":1000,"items":{"type":"string","minLength":1}},
"cursor":{"type":"string","description":"The next_cursor of the last answer, with the same paths."}}}`

const versionOutput = `{"type":"object","properties":{
"versions":{"type":"array","description":"In the order of paths: path, version (sha256: and hex, or absent), size, mode (octal), kind, or error."},
"truncated":{"type":"boolean"},
"versions_total":{"type":"integer"},
"next_cursor":{"type":"string","description":"Present if there are more."}}}`

// versionsAtOnce is more than fits a page: no more files are hashed for one.
const versionsAtOnce = 100

type versionShown struct {
	Path    string `json:"path"`
	Version string `json:"version,omitempty"`
	Size    *int64 `json:"size,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Error   string `json:"error,omitempty"`
}

func runVersions(ctx context.Context, c *call) (reply, error) {
	paths := c.arguments.list("paths")
	from := 0
	if at := c.arguments.text("cursor"); at != "" {
		n, err := strconv.Atoi(at)
		if err != nil || n < 1 || n >= len(paths) || strconv.Itoa(n) != at {
			return reply{}, &runner.Fault{Code: runner.InvalidArgument, Message: "cursor is none of this list of paths", Next: "give the next_cursor of the last answer, with the same paths"}
		}
		from = n
	}
	part := paths[from:min(from+versionsAtOnce, len(paths))]
	got, err := c.gateway.Versions(ctx, c.principal, files.VersionsRequest{Workspace: c.arguments.text("workspace_id"), Paths: part})
	if err != nil {
		return reply{}, err
	}
	return versions(got, from, len(paths)), nil
}

func versions(got []files.Version, from, total int) reply {
	rows := make([]versionShown, len(got))
	for i, v := range got {
		rows[i] = versionShown{Path: v.Path, Version: v.Version, Kind: v.Kind, Error: v.Error}
		if v.Kind != "" {
			rows[i].Size, rows[i].Mode = &v.Size, fmt.Sprintf("%04o", v.Mode)
		}
	}
	return longest(len(rows), func(n int) reply {
		next := ""
		if from+n < total {
			next = strconv.Itoa(from + n)
		}
		return reply{
			header: fmt.Sprintf("%d of %d paths, from the one with index %d on", n, total, from),
			value: struct {
				Versions  []versionShown `json:"versions"`
				Truncated bool           `json:"truncated"`
				Total     int            `json:"versions_total"`
				Next      string         `json:"next_cursor,omitempty"`
			}{rows[:n], next != "", total, next},
		}
	})
}
