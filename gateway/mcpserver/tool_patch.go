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
			"operation_key never applies twice: sent again, it answers with the recorded result. An operation_id is kept for good; ask operation_status for it, also for the rest of a long list. Send patches one after another.",
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
"paths_clipped":{"type":"boolean","description":"Paths are too long to be shown whole."},
"truncated":{"type":"boolean","description":"The lists go on: ask operation_status with cursor next_cursor; of a patch that was only checked there is no more."},
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
	return patchReply(out), nil
}

func patchReply(out gateway.Patched) reply {
	return changesReply(len(out.Changes), func(n, most int) reply {
		header := fmt.Sprintf("%s: %d of %d changes", out.Status, n, len(out.Changes))
		if out.OperationID != "" {
			header = out.OperationID + " " + header
		}
		return reply{header: header, value: changesOf(out, 0, n, most)}
	})
}

// How many bytes of a path are shown: all, or what fits in any case.
const (
	wholePath   = 4096
	clippedPath = 150
)

// changesReply is the longest reply of n changes that fits. One is always told, if need
// be with clipped paths.
func changesReply(n int, build func(changes, most int) reply) reply {
	if n > 0 {
		one := build(1, wholePath)
		out, err := one.render()
		switch {
		case err != nil || out.size() > largestPage:
			return build(1, clippedPath)
		case out.size() > defaultPage:
			return one
		}
	}
	return longest(n, func(changes int) reply { return build(changes, wholePath) })
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
	Facts        []patching.Fact   `json:"facts,omitempty"`
	FactsTotal   int               `json:"facts_total,omitempty"`
	Clipped      bool              `json:"paths_clipped,omitempty"`
	Truncated    bool              `json:"truncated"`
	Next         string            `json:"next_cursor,omitempty"`
	FilesTotal   int               `json:"files_total"`
	ChangesTotal int               `json:"changes_total"`
	HandoffTotal int               `json:"handoff_total"`
}

// changesOf is the part of n changes from one on, with at most so many bytes of a path.
func changesOf(p gateway.Patched, from, n, most int) changesShown {
	s := changesShown{Status: p.Status, OperationID: p.OperationID, Replayed: p.Replayed, Files: []string{}, Changes: []changeShown{}, Handoff: []gateway.Handoff{},
		ChangesTotal: len(p.Changes), HandoffTotal: len(p.Handoff), FactsTotal: len(p.Facts)}
	here := map[string]bool{}
	for i, c := range p.Changes {
		s.FilesTotal += len(touched(c))
		if i < from || i >= from+n {
			continue
		}
		for _, path := range touched(c) {
			s.Files = append(s.Files, clip(path, most))
			here[path] = true
		}
		s.Changes = append(s.Changes, changeShown{clip(c.Path, most), c.Kind, clip(c.From, most), c.Before, c.After})
	}
	for _, h := range p.Handoff {
		if here[h.Path] {
			s.Handoff = append(s.Handoff, gateway.Handoff{Path: clip(h.Path, most), Reason: h.Reason})
		}
	}
	for _, f := range p.Facts {
		if here[f.Path] || f.Path == "." {
			s.Facts = append(s.Facts, patching.Fact{Path: clip(f.Path, most), Found: clip(f.Found, most), Kept: clip(f.Kept, most), Because: clip(f.Because, most)})
		}
	}
	s.Clipped = most < wholePath
	s.Truncated = from+n < len(p.Changes)
	if s.Truncated && p.OperationID != "" {
		s.Next = strconv.Itoa(from + n)
	}
	return s
}

func touched(c patching.Change) []string {
	if c.From == "" {
		return []string{c.Path}
	}
	return []string{c.From, c.Path}
}
