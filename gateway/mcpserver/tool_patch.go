package mcpserver

import (
	"context"
	"fmt"
	"strconv"

	"codespace/gateway"
	"codespace/runner/patching"
)

func applyPatch() tool {
	return tool{
		name:  "apply_patch",
		title: "Apply a patch",
		description: "Change files of a workspace by a V4A patch: all of them, or none. Versions that you give are checked first. The same " +
			"operation_key never applies twice: sent again, it answers with the recorded result. An operation_id is kept for good; ask operation_status for it.",
		hints:  hints{destructive: true},
		input:  patchInput,
		output: patchOutput,
		run:    runApplyPatch,
	}
}

const patchInput = `{"type":"object","additionalProperties":false,"required":["workspace_id","patch"],"properties":{
"workspace_id":{"type":"string"},
"patch":{"type":"string","description":"*** Begin Patch, then hunks (*** Add File: PATH, *** Update File: PATH, *** Delete File: PATH), then *** End Patch. At most 8 MiB and 1000 files."},
"expected_versions":{"type":"object","maxProperties":2000,"additionalProperties":{"type":"string"},"description":"Path to the version that it must have, or absent. Otherwise VERSION_CONFLICT."},
"operation_key":{"type":"string","minLength":1,"maxLength":256,"description":"Your own name for this patch, which makes it safe to repeat."},
"check_only":{"type":"boolean","description":"Say what would change, and change nothing."}}}`

const patchOutput = `{"type":"object","properties":{
"status":{"type":"string","description":"applied or checked; anything else is an error."},
"operation_id":{"type":"string"},
"replayed":{"type":"boolean","description":"This was recorded before; nothing was done now."},
"files":{"type":"array","description":"Paths that were touched."},
"changes":{"type":"array","description":"path, kind (add, update, delete, move), from, before_version, after_version."},
"handoff":{"type":"array","description":"Changed files that a tool of the host may run or obey later: path, reason."},
"truncated":{"type":"boolean","description":"The lists go on: ask operation_status with cursor next_cursor."},
"next_cursor":{"type":"string"},
"files_total":{"type":"integer"},
"changes_total":{"type":"integer"},
"handoff_total":{"type":"integer"}}}`

func runApplyPatch(ctx context.Context, c *call) (reply, error) {
	a := c.arguments
	out, err := c.gateway.ApplyPatch(ctx, c.principal, gateway.PatchArguments{WorkspaceID: a.text("workspace_id"), Patch: a.text("patch"),
		Expected: a.texts("expected_versions"), Key: a.text("operation_key"), CheckOnly: a.boolean("check_only")})
	if err != nil {
		return reply{}, err
	}
	return longest(len(out.Changes), func(n int) reply {
		n = max(n, min(1, len(out.Changes))) // one is always told
		s := changesOf(out, 0, n)
		header := fmt.Sprintf("%s: %d of %d changes", out.Status, n, len(out.Changes))
		if out.OperationID != "" {
			header = out.OperationID + " " + header
		}
		return reply{header: header, value: s}
	}), nil
}

// changeShown is a change as a client sees it.
type changeShown struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	From   string `json:"from,omitempty"`
	Before string `json:"before_version,omitempty"`
	After  string `json:"after_version,omitempty"`
}

// changesShown is a part of a change set: changes, and what belongs to them.
type changesShown struct {
	Status       string            `json:"status"`
	OperationID  string            `json:"operation_id,omitempty"`
	Replayed     bool              `json:"replayed"`
	Files        []string          `json:"files"`
	Changes      []changeShown     `json:"changes"`
	Handoff      []gateway.Handoff `json:"handoff"`
	Truncated    bool              `json:"truncated"`
	Next         string            `json:"next_cursor,omitempty"`
	FilesTotal   int               `json:"files_total"`
	ChangesTotal int               `json:"changes_total"`
	HandoffTotal int               `json:"handoff_total"`
}

// changesOf is the part of n changes from one on.
func changesOf(p gateway.Patched, from, n int) changesShown {
	s := changesShown{Status: p.Status, OperationID: p.OperationID, Replayed: p.Replayed, Files: []string{}, Changes: []changeShown{}, Handoff: []gateway.Handoff{},
		ChangesTotal: len(p.Changes), HandoffTotal: len(p.Handoff)}
	here := map[string]bool{}
	for i, c := range p.Changes {
		s.FilesTotal += len(touched(c))
		if i < from || i >= from+n {
			continue
		}
		s.Files = append(s.Files, touched(c)...)
		s.Changes = append(s.Changes, changeShown{c.Path, c.Kind, c.From, c.Before, c.After})
		here[c.Path] = true
	}
	for _, h := range p.Handoff {
		if here[h.Path] {
			s.Handoff = append(s.Handoff, h)
		}
	}
	if from+n < len(p.Changes) {
		s.Truncated, s.Next = true, strconv.Itoa(from+n)
	}
	return s
}

func touched(c patching.Change) []string {
	if c.From == "" {
		return []string{c.Path}
	}
	return []string{c.From, c.Path}
}
