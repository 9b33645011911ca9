package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"codespace/ledger"
	"codespace/runner"
)

// Operation is a recorded patch. One that is under way, or whose end is not known, has
// the status unknown and no time of finishing.
type Operation struct {
	Patched
	Workspace string
	Open      bool // it is under way, or could not be settled yet
	Created   time.Time
	Finished  time.Time
	Events    []ledger.Event
}

// OperationName names a recorded patch: by its id or, if that is "", by the key that it
// was sent with to a workspace.
type OperationName struct{ ID, WorkspaceID, Key string }

// Operation finds a recorded patch. One in a workspace that p may not see is not found.
func (g *Gateway) Operation(ctx context.Context, p Principal, name OperationName) (Operation, error) {
	book, err := g.book(ctx)
	if err != nil {
		return Operation{}, err
	}
	op, err := find(ctx, book, name)
	if err == nil {
		_, err = g.workspace(p, op.WorkspaceID)
	}
	var hidden *runner.Fault
	if errors.Is(err, ledger.ErrNotFound) || errors.As(err, &hidden) {
		return Operation{}, &runner.Fault{Code: runner.OperationNotFound, Message: "no such operation",
			Next: "give the operation_id that apply_patch answered with, or a workspace_id and the operation_key that was sent"}
	}
	if err != nil {
		return Operation{}, g.unrecorded(err)
	}
	return operation(op)
}

func find(ctx context.Context, book *ledger.Ledger, name OperationName) (ledger.Operation, error) {
	if name.ID != "" {
		return book.ByID(ctx, name.ID)
	}
	return book.ByKey(ctx, name.WorkspaceID, name.Key)
}

func operation(op ledger.Operation) (Operation, error) {
	out := Operation{Workspace: op.WorkspaceID, Created: op.Created, Finished: op.Finished, Events: op.Events}
	text := op.Result
	if op.Status == ledger.Minted {
		text = op.Plan // its changes, as they are meant
	}
	if err := json.Unmarshal(text, &out.Patched); err != nil {
		return Operation{}, fmt.Errorf("cannot read the record of %s: %w", op.ID, err)
	}
	out.OperationID = op.ID
	if op.Status == ledger.Minted {
		out.Status, out.Open = string(ledger.Unknown), true
	}
	return out, nil
}
