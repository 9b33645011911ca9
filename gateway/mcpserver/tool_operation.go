package mcpserver

import (
	"context"
	"fmt"
	"strconv"

	"codespace/gateway"
	"codespace/runner"
)

func operationStatus() tool {
	return tool{
		name:  "operation_status",
		title: "Ask about a patch",
		description: "Tell how a recorded patch ended, by its operation_id or by the operation_key it was sent with (and the workspace_id). " +
			"Operations are kept for good, also when codespace was ended in the middle of one.",
		hints:  hints{readOnly: true, idempotent: true},
		input:  operationInput,
		output: operationOutput,
		run:    runOperationStatus,
	}
}

const operationInput = `{"type":"object","additionalProperties":false,"properties":{
"operation_id":{"type":"string"},
"operation_key":{"type":"string","minLength":1,"maxLength":256,"description":"Instead of operation_id; needs workspace_id."},
"workspace_id":{"type":"string"},
"cursor":{"type":"string","description":"The next_cursor of the last answer."}}}`

const operationOutput = `{"type":"object","properties":{
"kind":{"type":"string","description":"patch."},
"status":{"type":"string","description":"applied, rejected, failed_rolled_back, failed_partial, or unknown."},
"in_progress":{"type":"boolean","description":"It is under way; ask again. The status is unknown so far."},
"operation_id":{"type":"string"},
"replayed":{"type":"boolean","description":"Always false here."},
"workspace":{"type":"string"},
"created_at":{"type":"string"},
"finished_at":{"type":"string"},
"error":{"type":"object","description":"Why it was not applied: code, message."},
"facts":{"type":"array","description":"Of the paths shown, those that somebody else has changed meanwhile: path, found, kept, because."},
"facts_total":{"type":"integer"},
"files":{"type":"array"},
"changes":{"type":"array","description":"As apply_patch; of a patch that was not applied, what was meant."},
"handoff":{"type":"array"},
"events":{"type":"array","description":"seq, kind (minted, finished), at."},
"truncated":{"type":"boolean"},
"next_cursor":{"type":"string"},
"files_total":{"type":"integer"},
"changes_total":{"type":"integer"},
"handoff_total":{"type":"integer"}}}`

type operationShown struct {
	Kind      string       `json:"kind"`
	Workspace string       `json:"workspace"`
	Open      bool         `json:"in_progress"`
	Created   string       `json:"created_at"`
	Finished  string       `json:"finished_at,omitempty"`
	Error     *causeShown  `json:"error,omitempty"`
	Events    []eventShown `json:"events"`
	changesShown
}

type causeShown struct {
	Code    runner.Code `json:"code"`
	Message string      `json:"message"`
}

type eventShown struct {
	Seq  int64  `json:"seq"`
	Kind string `json:"kind"`
	At   string `json:"at"`
}

func runOperationStatus(ctx context.Context, c *call) (reply, error) {
	a := c.arguments
	if a.has("operation_id") == a.has("operation_key") || a.has("operation_key") && !a.has("workspace_id") {
		return reply{}, &runner.Fault{Code: runner.InvalidArgument, Message: "exactly one of operation_id and operation_key is needed, and workspace_id with a key",
			Next: "give the operation_id, or workspace_id and operation_key"}
	}
	op, err := c.gateway.Operation(ctx, c.principal,
		gateway.OperationName{ID: a.text("operation_id"), WorkspaceID: a.text("workspace_id"), Key: a.text("operation_key")})
	if err != nil {
		return reply{}, err
	}
	from := 0
	if at := a.text("cursor"); at != "" {
		if from, err = strconv.Atoi(at); err != nil || from < 1 || from >= len(op.Changes) || strconv.Itoa(from) != at {
			return reply{}, &runner.Fault{Code: runner.InvalidArgument, Message: "cursor is none of this operation", Next: "give the next_cursor of the last answer"}
		}
	}
	return operationReply(op, from), nil
}

func operationReply(op gateway.Operation, from int) reply {
	s := operationShown{Kind: "patch", Workspace: op.Workspace, Open: op.Open, Created: stamp(op.Created), Finished: stamp(op.Finished), Events: []eventShown{}}
	for _, e := range op.Events {
		s.Events = append(s.Events, eventShown{e.Seq, e.Kind, stamp(e.At)})
	}
	if op.Cause != nil {
		s.Error = &causeShown{op.Cause.Code, clip(op.Cause.Message, 1000)}
	}
	return changesReply(len(op.Changes)-from, func(n, most int) reply {
		s.changesShown = changesOf(op.Patched, from, n, most)
		return reply{header: fmt.Sprintf("%s %s: %d of %d changes%s", op.OperationID, op.Status, n, len(op.Changes), remark(op)), value: s}
	})
}

// remark keeps changes that were meant from being read as made.
func remark(op gateway.Operation) string {
	switch {
	case op.Open:
		return ", under way or not settled yet: ask again"
	case op.Status == "failed_rolled_back":
		return " that were meant; none was made"
	case op.Status != "applied":
		return " that were meant; facts say what became of the files"
	}
	return ""
}
