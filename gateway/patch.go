package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"codespace/ledger"
	"codespace/policy"
	"codespace/runner"
	"codespace/runner/failpoint"
	"codespace/runner/files"
	"codespace/runner/patching"
)

// PatchArguments are the arguments of apply_patch.
type PatchArguments struct {
	WorkspaceID string
	Patch       string
	Expected    map[string]string // versions that paths must have, "absent" among them
	Key         string            // operation_key, "" for none
	CheckOnly   bool
}

// Patched is how a patch ended, as it is recorded and answered.
type Patched struct {
	Status      string            `json:"status"`
	OperationID string            `json:"operation_id,omitempty"`
	Replayed    bool              `json:"replayed"`
	Changes     []patching.Change `json:"changes"`
	Handoff     []Handoff         `json:"handoff"`
	Facts       []patching.Fact   `json:"facts,omitempty"`
	Keyed       bool              `json:"keyed,omitempty"` // it has an operation_key
	Cause       *runner.Fault     `json:"cause,omitempty"` // why it was not applied
}

// Handoff is a file that a tool of the host may run or obey later.
type Handoff struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// ApplyPatch is the line of a patch: policy, key, lease, plan, mint, apply, finish. The
// error of a patch that was recorded has its operation_id.
func (g *Gateway) ApplyPatch(ctx context.Context, p Principal, a PatchArguments) (Patched, error) {
	workspace, err := g.workspace(p, a.WorkspaceID)
	if err != nil {
		return Patched{}, err
	}
	grant, err := policy.Decide(workspace, policy.Action{Kind: policy.Patch})
	if err != nil {
		return Patched{}, fault(err, runner.Unauthorized)
	}
	if len(a.Patch) > patching.MaxBytes {
		return Patched{}, &runner.Fault{Code: runner.InvalidPatch, Message: fmt.Sprintf("the patch has %d bytes, more than %d", len(a.Patch), patching.MaxBytes), Next: "split it"}
	}
	if a.CheckOnly {
		return g.checked(ctx, grant, a)
	}
	if err := g.beginPatch(); err != nil {
		return Patched{}, err
	}
	defer g.applying.Done()
	unlock, err := g.keys.lock(ctx, a.WorkspaceID+"\x00"+a.Key, a.Key != "")
	if err != nil {
		return Patched{}, err
	}
	defer unlock()
	book, err := g.book(ctx)
	if err != nil {
		return Patched{}, err
	}
	if a.Key != "" {
		op, err := book.Replay(ctx, a.WorkspaceID, a.Key, a.hash())
		if !errors.Is(err, ledger.ErrNotFound) {
			return g.replayed(op, err)
		}
	}
	lease, err := g.lease(grant, Holder{Kind: "patch"})
	if err != nil {
		return Patched{}, err
	}
	defer lease.Release()
	if err := g.unsettled(a.WorkspaceID); err != nil {
		return Patched{}, err
	}
	return g.change(ctx, book, patch{PatchArguments: a, grant: grant, lease: lease})
}

// patch is a decided patch that holds its lease.
type patch struct {
	PatchArguments
	grant policy.Grant
	lease *Lease
	id    string   // of its plan; "" for one that is only checked
	fence *os.File // reads the end of file once no process works on it any more
}

func (p patch) request() files.PatchRequest {
	return files.PatchRequest{ID: p.id, Workspace: p.grant.Workspace.ID, Digest: p.grant.Digest, Patch: []byte(p.Patch), Expected: p.Expected}
}

// checked plans a patch and says what it would do. It takes no lease and records
// nothing.
func (g *Gateway) checked(ctx context.Context, grant policy.Grant, a PatchArguments) (Patched, error) {
	child, err := g.runner(ctx)
	if err != nil {
		return Patched{}, err
	}
	plan, err := child.Client.PlanPatch(ctx, patch{PatchArguments: a, grant: grant}.request(), nil)
	if err != nil {
		return Patched{}, fault(err, runner.Internal)
	}
	return told("checked", plan.Changes), nil
}

func told(status string, changes []patching.Change) Patched {
	return Patched{Status: status, Changes: changes, Handoff: handoff(changes)}
}

// change plans, mints, applies and finishes. From the mint on nothing the client does
// ends it.
func (g *Gateway) change(ctx context.Context, book *ledger.Ledger, p patch) (Patched, error) {
	child, err := g.runner(ctx)
	if err != nil {
		return Patched{}, err
	}
	fence, held, err := os.Pipe()
	if err != nil {
		return Patched{}, err
	}
	defer fence.Close()
	p.id, p.fence = "plan_"+rand.Text(), fence
	plan, err := child.Client.PlanPatch(ctx, p.request(), p.lease.with([]*os.File{held}))
	held.Close()
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		child.Client.DropPlan(ctx, p.id) // it may be there all the same
		return Patched{}, fault(err, runner.Internal)
	}
	op, minted, err := g.mint(ctx, book, p, plan)
	if err != nil || !minted {
		child.Client.DropPlan(ctx, p.id)
		if err != nil && op.ID != "" { // it may be recorded all the same
			g.orphan(op.ID, &patching.Outcome{Status: patching.RolledBack})
		}
		return g.replayed(op, err)
	}
	outcome, err := child.Client.ApplyPatch(ctx, p.id)
	if err != nil {
		g.log.Error("the outcome of a patch is not known yet", "operation_id", op.ID, "error", err)
		outcome, err = g.recover(ctx, p, op)
	}
	if err != nil {
		g.log.Error("a patch could not be settled; it is when codespace is used again", "operation_id", op.ID, "error", err)
		g.orphan(op.ID, nil)
		return unknown(op, runner.RunnerUnavailable)
	}
	return g.finish(ctx, book, op, outcome)
}

func (g *Gateway) mint(ctx context.Context, book *ledger.Ledger, p patch, planned patching.Planned) (ledger.Operation, bool, error) {
	text, err := json.Marshal(planned)
	if err != nil {
		return ledger.Operation{}, false, err
	}
	if err := failpoint.Hit("mint"); err != nil {
		return ledger.Operation{}, false, err
	}
	sum := sha256.Sum256(text)
	op, minted, err := book.Mint(ctx, ledger.Intent{WorkspaceID: p.grant.Workspace.ID, Key: p.Key, RequestHash: p.hash(),
		ChangeHash: "sha256:" + hex.EncodeToString(sum[:]), Plan: text})
	if err == nil && minted {
		err = failpoint.Hit("minted")
	}
	return op, minted, err
}

// hash is of all that decides what the patch does.
func (a PatchArguments) hash() string {
	text, err := json.Marshal(struct {
		Workspace, Patch string
		Expected         map[string]string
	}{a.WorkspaceID, a.Patch, a.Expected})
	if err != nil {
		panic(err) // strings always marshal
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// finish records how a patch ended. A ledger that fails now is told later: the disk is
// as the outcome says.
func (g *Gateway) finish(ctx context.Context, book *ledger.Ledger, op ledger.Operation, o patching.Outcome) (Patched, error) {
	out, text, err := ended(op, o)
	if err != nil {
		return Patched{}, err
	}
	if err = failpoint.Hit("finish"); err == nil {
		err = book.Finish(ctx, op.ID, ledger.Status(out.Status), text)
	}
	if err != nil {
		g.log.Error("the end of a patch could not be recorded; it is settled later", "operation_id", op.ID, "status", out.Status, "error", err)
		g.orphan(op.ID, &o)
		return unknown(op, runner.LedgerUnavailable)
	}
	return out.answer()
}

// ended is an operation's end, and as the ledger keeps it.
func ended(op ledger.Operation, o patching.Outcome) (Patched, json.RawMessage, error) {
	var planned patching.Planned
	if err := json.Unmarshal(op.Plan, &planned); err != nil {
		return Patched{}, nil, fmt.Errorf("cannot read the plan of %s: %w", op.ID, err)
	}
	out := told(string(o.Status), planned.Changes)
	out.OperationID, out.Facts, out.Keyed = op.ID, o.Facts, op.Key != ""
	if o.Status != patching.Applied {
		out.Handoff = nil
		out.Cause = &runner.Fault{Code: runner.FileOperationFailed, Message: "the patch was not applied", Next: "look with version or read at its files"}
	}
	if o.Status == patching.Unknown {
		out.Cause.Message = "nothing on the disk tells whether the patch was applied: its files were changed since"
	}
	if c := o.Cause; c != nil {
		out.Cause = &runner.Fault{Code: runner.Code(c.Code), Message: c.Message, Next: c.Next, Retryable: c.Retryable, Details: c.Details}
	}
	text, err := json.Marshal(out)
	return out, text, err
}

// answer is what a client is told: only an applied patch is no error.
func (p Patched) answer() (Patched, error) {
	if p.Cause == nil {
		return p, nil
	}
	f := *p.Cause
	f.Message += "; " + afterwards[p.Status] + " (operation " + p.OperationID + ")"
	if p.Keyed {
		f.Retryable, f.Next = false, "the operation_key stands for this outcome now: once what was in the way is mended, send the patch with a new key"
	}
	f.OperationID = p.OperationID
	f.Details = map[string]any{"status": p.Status, "replayed": p.Replayed}
	for k, v := range p.Cause.Details {
		f.Details[k] = v
	}
	if len(p.Facts) > 0 {
		f.Details["facts"] = p.Facts[:min(len(p.Facts), someFacts)]
		f.Details["facts_total"] = len(p.Facts)
	}
	return Patched{}, &f
}

// someFacts is how many facts an error names; operation_status has them all.
const someFacts = 5

// afterwards says what a patch that was not applied has left.
var afterwards = map[string]string{
	string(ledger.FailedRolledBack): "every file is as it was",
	string(ledger.FailedPartial):    "some files could not be brought back: operation_status names them in facts",
	string(ledger.Unknown):          "operation_status names the files in facts",
}

func unknown(op ledger.Operation, code runner.Code) (Patched, error) {
	return Patched{}, &runner.Fault{Code: code, OperationID: op.ID, Message: "it is not known yet how the patch ended",
		Next: "ask operation_status; do not send it again", Details: map[string]any{"status": string(ledger.Unknown)}}
}

// replayed answers with what was recorded before.
func (g *Gateway) replayed(op ledger.Operation, err error) (Patched, error) {
	var conflict *ledger.KeyConflict
	switch {
	case errors.As(err, &conflict):
		return Patched{}, &runner.Fault{Code: runner.OperationKeyConflict, OperationID: conflict.Operation,
			Message: "this operation_key was used for another request", Next: "use a new key for a new patch; operation_status shows what the key stands for"}
	case err != nil:
		return Patched{}, g.unrecorded(err)
	case op.Status == ledger.Minted: // by another process, or nobody could settle it yet
		return Patched{}, &runner.Fault{Code: runner.WorkspaceBusy, Retryable: true, OperationID: op.ID, Message: "the patch of this operation_key is under way",
			Next: "send the same again, or ask operation_status", Details: map[string]any{"status": string(ledger.Unknown)}}
	}
	var out Patched
	if err := json.Unmarshal(op.Result, &out); err != nil {
		return Patched{}, fmt.Errorf("cannot read the result of %s: %w", op.ID, err)
	}
	out.Replayed = true
	return out.answer()
}

// unrecorded is what a client is told of a ledger that cannot be used. Nothing was
// changed.
func (g *Gateway) unrecorded(err error) error {
	g.log.Error("the ledger cannot be used; patches are refused", "error", err)
	return &runner.Fault{Code: runner.LedgerUnavailable, Retryable: true, Message: "the ledger cannot be used, so nothing was changed",
		Next: "ask the operator to look at the log, then try again"}
}

// handoff are the files of a change set that a tool of the host may run or obey later.
func handoff(changes []patching.Change) []Handoff {
	out := []Handoff{}
	for _, c := range changes {
		if c.Kind == "delete" {
			continue
		}
		if reason := policy.Handoff(c.Path, c.Mode, c.Kind != "update"); reason != "" {
			out = append(out, Handoff{c.Path, reason})
		}
	}
	return out
}
