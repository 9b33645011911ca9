package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"codespace/ledger"
	"codespace/policy"
	"codespace/runner"
	"codespace/runner/files"
	"codespace/runner/patching"
)

// OpenLedger opens the ledger on first use, and again after it failed.
type OpenLedger func(context.Context) (*ledger.Ledger, error)

// books is the ledger as the gateway uses it.
type books struct {
	openLedger OpenLedger // nil: this gateway takes no patches

	bookMu  sync.Mutex // guards what follows
	ledger  *ledger.Ledger
	stuck   map[string]string            // by workspace: an operation that could not be settled
	orphans map[string]*patching.Outcome // of operations of ours whose end is not recorded, nil where it is not known
}

// book returns the ledger, with nothing unfinished in it that could be settled.
func (g *Gateway) book(ctx context.Context) (*ledger.Ledger, error) {
	l, err := g.opened(ctx)
	if err != nil {
		return nil, g.unrecorded(err)
	}
	if err := g.settleAll(ctx, l); err != nil {
		g.log.Error("not every unfinished patch could be settled", "error", err)
	}
	return l, nil
}

func (g *Gateway) opened(ctx context.Context) (*ledger.Ledger, error) {
	g.bookMu.Lock()
	defer g.bookMu.Unlock()
	if g.ledger != nil {
		return g.ledger, nil
	}
	if g.openLedger == nil {
		return nil, errors.New("this codespace keeps none")
	}
	l, err := g.openLedger(ctx)
	if err == nil {
		g.ledger = l
	}
	return l, err
}

func (g *Gateway) closeBook() {
	g.bookMu.Lock()
	defer g.bookMu.Unlock()
	if g.ledger != nil {
		g.ledger.Close()
	}
}

// Recover settles what earlier processes left unfinished.
func (g *Gateway) Recover(ctx context.Context) error {
	l, err := g.opened(ctx)
	if err != nil {
		return err
	}
	return g.settleAll(ctx, l)
}

// settleAll finishes the operations of owners that are gone, and those of this process
// whose end could not be recorded.
func (g *Gateway) settleAll(ctx context.Context, l *ledger.Ledger) error {
	ctx = context.WithoutCancel(ctx)
	stuck := map[string]string{}
	settle := func(op ledger.Operation) (ledger.Status, json.RawMessage, error) {
		outcome, err := g.settle(ctx, op)
		if err != nil {
			stuck[op.WorkspaceID] = op.ID
			return "", nil, err
		}
		out, text, err := ended(op, *outcome)
		return ledger.Status(out.Status), text, err
	}
	errs := []error{l.Settle(ctx, settle)}
	g.bookMu.Lock()
	ours := maps.Clone(g.orphans)
	g.bookMu.Unlock()
	for id, outcome := range ours {
		workspace, err := g.settleOurs(ctx, l, id, outcome)
		if err != nil && outcome == nil {
			stuck[workspace] = id
		}
		if err == nil {
			g.bookMu.Lock()
			delete(g.orphans, id)
			g.bookMu.Unlock()
		}
		errs = append(errs, err)
	}
	g.bookMu.Lock()
	g.stuck = stuck
	g.bookMu.Unlock()
	return errors.Join(errs...)
}

// unsettled refuses to change a workspace in which an earlier patch may be half done.
func (g *Gateway) unsettled(workspaceID string) error {
	g.bookMu.Lock()
	defer g.bookMu.Unlock()
	id, is := g.stuck[workspaceID]
	if !is {
		return nil
	}
	return &runner.Fault{Code: runner.WorkspaceBusy, Retryable: true, Message: "an earlier patch, " + id + ", was interrupted and could not be settled yet",
		Next: "ask operation_status for it, which tries again; the operator's log says what is in the way", Details: map[string]any{"unsettled": id}}
}

func (g *Gateway) settleOurs(ctx context.Context, l *ledger.Ledger, id string, known *patching.Outcome) (workspace string, err error) {
	op, err := l.ByID(ctx, id)
	if errors.Is(err, ledger.ErrNotFound) { // it was not recorded after all
		return "", nil
	}
	if err != nil || op.Status != ledger.Minted {
		return op.WorkspaceID, err
	}
	outcome := known
	if outcome == nil {
		outcome, err = g.settle(ctx, op)
	}
	if err != nil {
		return op.WorkspaceID, err
	}
	out, text, err := ended(op, *outcome)
	if err != nil {
		return op.WorkspaceID, err
	}
	return op.WorkspaceID, l.Finish(ctx, id, ledger.Status(out.Status), text)
}

func (g *Gateway) orphan(id string, known *patching.Outcome) {
	g.bookMu.Lock()
	defer g.bookMu.Unlock()
	if g.orphans == nil {
		g.orphans = map[string]*patching.Outcome{}
	}
	g.orphans[id] = known
}

// settle brings one operation to an end under the workspace's lease: while that is
// held somewhere, whoever applies it may be at it still.
func (g *Gateway) settle(ctx context.Context, op ledger.Operation) (*patching.Outcome, error) {
	workspace, err := g.workspace(Principal{}, op.WorkspaceID)
	if err != nil {
		return nil, err
	}
	grant, err := policy.Decide(workspace, policy.Action{Kind: policy.Patch})
	if err != nil {
		return nil, err
	}
	lease, err := g.lease(grant, Holder{Kind: "recovery"})
	if err != nil {
		return nil, err
	}
	defer lease.Release()
	outcome, err := g.settled(ctx, patch{grant: grant, lease: lease}, op)
	if err != nil {
		return nil, err
	}
	g.log.Info("an unfinished patch was settled", "operation_id", op.ID, "status", outcome.Status)
	return &outcome, nil
}

func (g *Gateway) settled(ctx context.Context, p patch, op ledger.Operation) (patching.Outcome, error) {
	req := files.SettleRequest{Workspace: p.grant.Workspace.ID, Digest: p.grant.Digest}
	if err := json.Unmarshal(op.Plan, &req.Planned); err != nil {
		return patching.Outcome{}, err
	}
	child, err := g.runner(ctx)
	if err != nil {
		return patching.Outcome{}, err
	}
	return child.Client.SettlePatch(ctx, req, p.lease.with(nil))
}

// recoverTimeout is how long a patch whose runner was lost is waited for.
const recoverTimeout = 10 * time.Second

// recover finds out what became of a patch whose answer was lost, once nobody can be at
// it any more.
func (g *Gateway) recover(ctx context.Context, p patch, op ledger.Operation) (patching.Outcome, error) {
	end := time.Now().Add(recoverTimeout)
	p.fence.SetReadDeadline(end)
	if _, err := p.fence.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return patching.Outcome{}, fmt.Errorf("a helper is at it still: %w", err)
	}
	for {
		outcome, err := g.settled(ctx, patch{grant: p.grant, lease: p.lease}, op)
		var f *runner.Fault
		if !errors.As(err, &f) || !f.Retryable || time.Now().After(end) {
			return outcome, err
		}
		<-time.After(retryAfter) // what is left of the lost runner is being cleared away
	}
}

// keys are the operation keys that are being worked on: of several calls with one, one
// works, and the others then find what it recorded.
type keys struct {
	keyMu sync.Mutex
	busy  map[string]chan struct{} // closed when the key is free
}

// lock waits until a key is free and takes it.
func (k *keys) lock(ctx context.Context, key string, needed bool) (unlock func(), err error) {
	if !needed {
		return func() {}, nil
	}
	mine := make(chan struct{})
	for {
		k.keyMu.Lock()
		other := k.busy[key]
		if other == nil {
			if k.busy == nil {
				k.busy = map[string]chan struct{}{}
			}
			k.busy[key] = mine
			k.keyMu.Unlock()
			break
		}
		k.keyMu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return func() {
		k.keyMu.Lock()
		defer k.keyMu.Unlock()
		delete(k.busy, key)
		close(mine)
	}, nil
}
