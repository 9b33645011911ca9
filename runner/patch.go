package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"codespace/openat2fs"
	"codespace/policy"
	"codespace/runner/failpoint"
	"codespace/runner/files"
	"codespace/runner/patching"
	"codespace/sandbox/message"
)

const (
	planKept     = 2 * time.Minute // until it is applied
	planTimeout  = time.Minute
	applyTimeout = 5 * time.Minute
	maxPlans     = 64
	maxPlanning  = 4 // at once: each may take some hundred MiB
)

// PlanPatch plans a patch and keeps the helper that will apply it. What is held, which
// PlanPatch owns, stays open as long as any helper works on the patch: the lease, and
// what tells the gateway of the end.
func (r *Runner) PlanPatch(ctx context.Context, req files.PatchRequest, held []*os.File) (patching.Planned, error) {
	grant, err := r.grant(req.Workspace, req.Digest, policy.Action{Kind: policy.Patch})
	if err != nil {
		message.CloseAll(held)
		return patching.Planned{}, err
	}
	p, err := r.planner(ctx, grant)
	if err != nil {
		message.CloseAll(held)
		return patching.Planned{}, err
	}
	defer func() { <-r.planning }()
	p.held = held
	a, err := p.ask(ctx, planTimeout, frame{patching.Request{Plan: &patching.Plan{Expected: req.Expected}}, req.Patch, descriptors(held)})
	if err == nil && a.Planned == nil {
		err = errors.New("the patch helper answers without a plan")
	}
	if err != nil || req.ID == "" {
		p.end()
		r.prepareSpare(grant)
	}
	if err != nil {
		return patching.Planned{}, patchFault(err)
	}
	p.planned = *a.Planned
	if req.ID == "" {
		return p.planned, nil
	}
	if err := r.keep(ctx, req.ID, p); err != nil {
		p.end()
		return patching.Planned{}, err
	}
	return p.planned, nil
}

// planner waits for a turn to plan, which is given back by the caller, and returns a
// helper.
func (r *Runner) planner(ctx context.Context, g policy.Grant) (*patcher, error) {
	select {
	case r.planning <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p, err := r.patcher(ctx, g)
	if err != nil {
		<-r.planning
	}
	return p, err
}

// keep keeps a plan until it is taken, unless nobody waits for it any more.
func (r *Runner) keep(ctx context.Context, id string, p *patcher) error {
	r.patchMu.Lock()
	defer r.patchMu.Unlock()
	if ctx.Err() != nil || r.patchesOver || r.plans[id] != nil || len(r.plans) >= maxPlans {
		return &Fault{Code: LimitExceeded, Retryable: true, Message: fmt.Sprintf("the runner already holds %d plans, or is ending", len(r.plans)), Next: "try again"}
	}
	p.expire = time.AfterFunc(planKept, func() { r.DropPlan(context.Background(), id) })
	r.plans[id] = p
	return nil
}

// take takes a plan; nobody else gets it.
func (r *Runner) take(id string) (*patcher, error) {
	r.patchMu.Lock()
	defer r.patchMu.Unlock()
	p := r.plans[id]
	if p == nil {
		return nil, &Fault{Code: RunnerUnavailable, Message: "the plan of this patch is gone; nothing was changed", Next: "send the patch again", Retryable: true}
	}
	delete(r.plans, id)
	p.expire.Stop()
	return p, nil
}

// DropPlan gives a plan up.
func (r *Runner) DropPlan(_ context.Context, id string) error {
	p, err := r.take(id)
	if err == nil {
		p.end()
	}
	return nil
}

// ApplyPatch applies a plan: every file, or none. What a helper that dies leaves is
// settled by another. An error means that it is not known what became of it.
func (r *Runner) ApplyPatch(ctx context.Context, id string) (patching.Outcome, error) {
	p, err := r.take(id)
	if err != nil {
		f := err.(*Fault)
		return patching.Outcome{Status: patching.RolledBack, Cause: &patching.Fault{Code: string(f.Code), Message: f.Message, Next: f.Next, Retryable: f.Retryable}}, nil
	}
	defer message.CloseAll(p.held)
	a, err := p.ask(context.WithoutCancel(ctx), applyTimeout, frame{Request: patching.Request{Apply: true}})
	if err == nil {
		err = failpoint.Hit("answer")
	}
	if err == nil && a.Outcome != nil {
		go p.kill() // it holds nothing any more
		r.prepareSpare(p.grant)
		return advised(*a.Outcome), nil
	}
	r.log.Error("a patch helper did not finish; what it left is settled", "workspace", p.grant.Workspace.ID, "error", err)
	p.kill()
	out, settled := r.settle(ctx, p.grant, p.planned, p.held)
	var cause *patching.Fault
	if errors.As(err, &cause) && out.Status == patching.RolledBack {
		out.Cause = adviseOn(cause)
	}
	return out, settled
}

// SettlePatch brings to an end what an earlier runner has left. The caller holds the
// workspace's lease.
func (r *Runner) SettlePatch(ctx context.Context, req files.SettleRequest, held []*os.File) (patching.Outcome, error) {
	defer message.CloseAll(held)
	grant, err := r.grant(req.Workspace, req.Digest, policy.Action{Kind: policy.Patch})
	if err != nil {
		return patching.Outcome{}, err
	}
	return r.settle(ctx, grant, req.Planned, held)
}

func (r *Runner) settle(ctx context.Context, g policy.Grant, planned patching.Planned, held []*os.File) (patching.Outcome, error) {
	ctx = context.WithoutCancel(ctx)
	p, err := r.patcher(ctx, g)
	if err != nil {
		return patching.Outcome{}, err
	}
	defer p.end()
	a, err := p.ask(ctx, applyTimeout, frame{Request: patching.Request{Settle: &planned}, fds: descriptors(held)})
	if err == nil && a.Outcome == nil {
		err = errors.New("the patch helper answers without an outcome")
	}
	if err != nil {
		return patching.Outcome{}, patchFault(err)
	}
	out := advised(*a.Outcome)
	if out.Status != patching.Applied && out.Cause == nil {
		out.Cause = &patching.Fault{Code: string(RunnerUnavailable), Message: "the patch was interrupted", Next: "look with version at its files, then send it again", Retryable: true}
	}
	return out, nil
}

// patchFault is why a helper did not do what it was asked for.
func patchFault(err error) error {
	var f *patching.Fault
	if errors.As(err, &f) {
		f = adviseOn(f)
		return &Fault{Code: Code(f.Code), Message: f.Message, Next: f.Next, Retryable: f.Retryable, Details: f.Details}
	}
	var file *openat2fs.Error
	if errors.As(err, &file) {
		return fileFault(err)
	}
	said := "the patch helper ended before it was done"
	if errors.Is(err, context.DeadlineExceeded) {
		said = "the patch helper took too long and was ended"
	}
	return fmt.Errorf("%w (%w)", err, &Fault{Code: RunnerUnavailable, Retryable: true, Message: said, Next: "try again"})
}

func advised(o patching.Outcome) patching.Outcome {
	if o.Cause != nil {
		o.Cause = adviseOn(o.Cause)
	}
	return o
}

func adviseOn(f *patching.Fault) *patching.Fault {
	if f.Next != "" {
		return f
	}
	told := *f
	told.Next = fileAdvice[openat2fs.Code(f.Code)]
	return &told
}
