package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"codespace/openat2fs"
	"codespace/policy"
	"codespace/runner/files"
	"codespace/runner/patching"
	"codespace/sandbox"
	"codespace/sandbox/message"
)

const (
	planKept     = 2 * time.Minute // until it is applied
	planTimeout  = time.Minute
	applyTimeout = 5 * time.Minute
	maxPlans     = 64
)

// patches are the patch helpers that hold a plan.
type patches struct {
	patchProgram string // absolute path of codespace-patch

	patchMu sync.Mutex // guards what follows
	filter  []byte     // of patch helpers, once compiled
	plans   map[string]*patcher
	over    bool // no helper is started any more
	helpers sync.WaitGroup
}

// patcher is one running codespace-patch.
type patcher struct {
	conn    *patching.Conn
	process *os.Process
	gone    chan struct{} // closed once it is reaped
	held    []*os.File    // open as long as it lives

	grant   policy.Grant
	planned patching.Planned
	expire  *time.Timer
}

// PlanPatch plans a patch and keeps the helper that will apply it. What is held, which
// PlanPatch owns, stays open as long as any helper works on the patch: the lease, and
// what tells the gateway of the end.
func (r *Runner) PlanPatch(ctx context.Context, req files.PatchRequest, held []*os.File) (files.PatchPlan, error) {
	grant, err := r.grant(req.Workspace, req.Digest, policy.Action{Kind: policy.Patch})
	if err != nil {
		message.CloseAll(held)
		return files.PatchPlan{}, err
	}
	p, err := r.newPatcher(ctx, grant, held)
	if err != nil {
		message.CloseAll(held)
		return files.PatchPlan{}, err
	}
	p.held = held
	a, err := p.ask(ctx, planTimeout, frame{Request: patching.Request{Plan: &patching.Plan{Expected: req.Expected}}, body: req.Patch})
	if err == nil && a.Planned == nil {
		err = errors.New("the patch helper answers without a plan")
	}
	if err != nil || req.Check {
		p.end()
	}
	if err != nil {
		return files.PatchPlan{}, patchFault(err)
	}
	p.planned = *a.Planned
	plan := files.PatchPlan{Planned: p.planned}
	if req.Check {
		return plan, nil
	}
	plan.ID = "plan_" + rand.Text()
	return plan, r.keep(plan.ID, p)
}

// keep keeps a plan until it is taken.
func (r *Runner) keep(id string, p *patcher) error {
	r.patchMu.Lock()
	defer r.patchMu.Unlock()
	if r.over || len(r.plans) >= maxPlans {
		p.end()
		return &Fault{Code: LimitExceeded, Retryable: true, Message: fmt.Sprintf("the runner already holds %d plans", len(r.plans)), Next: "try again"}
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
	defer p.end()
	a, err := p.ask(context.WithoutCancel(ctx), applyTimeout, frame{Request: patching.Request{Apply: true}})
	if err == nil && a.Outcome != nil {
		return advised(*a.Outcome), nil
	}
	r.log.Error("a patch helper did not finish; what it left is settled", "workspace", p.grant.Workspace.ID, "error", err)
	p.kill()
	return r.settle(ctx, p.grant, p.planned, p.held)
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
	p, err := r.newPatcher(ctx, g, held)
	if err != nil {
		return patching.Outcome{}, err
	}
	defer p.kill() // the files are whose they were
	a, err := p.ask(ctx, applyTimeout, frame{Request: patching.Request{Settle: &planned}})
	if err == nil && a.Outcome == nil {
		err = errors.New("the patch helper answers without an outcome")
	}
	if err != nil {
		return patching.Outcome{}, patchFault(err)
	}
	out := advised(*a.Outcome)
	if out.Status != patching.Applied {
		out.Cause = &patching.Fault{Code: string(Internal), Message: "the patch was interrupted", Next: "look with version at its files, then send it again", Retryable: true}
	}
	return out, nil
}

// newPatcher starts a patch helper, which is locked down when it returns.
func (r *Runner) newPatcher(ctx context.Context, g policy.Grant, held []*os.File) (*patcher, error) {
	root, err := r.roots.open(g)
	if err != nil {
		return nil, err
	}
	filter, err := r.patchFilter(ctx)
	if err != nil {
		return nil, err
	}
	setup := patching.Setup{UID: -1, GID: -1, Filter: filter, Protected: g.Workspace.Protected,
		Limits: patching.Limits{Files: patching.MaxFiles, FileBytes: patching.MaxFileBytes}}
	if (sandbox.Host{}).Root() {
		setup.UID, setup.GID = int(root.owner.uid), int(root.owner.gid)
	}
	p, err := r.startPatcher()
	if err != nil {
		return nil, err
	}
	p.grant = g
	if err := p.setUp(ctx, setup, root.Root, held); err != nil {
		p.kill()
		return nil, patchFault(err)
	}
	return p, nil
}

func (p *patcher) setUp(ctx context.Context, s patching.Setup, root *openat2fs.Root, held []*os.File) error {
	fd, err := root.Dup()
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	fds := []int{fd}
	for _, f := range held {
		fds = append(fds, int(f.Fd()))
	}
	_, err = p.ask(ctx, planTimeout, frame{Request: patching.Request{Setup: &s}, fds: fds})
	return err
}

// patchFilter has the sandbox helper compile the filter, once.
func (r *Runner) patchFilter(ctx context.Context) ([]byte, error) {
	r.patchMu.Lock()
	filter := r.filter
	r.patchMu.Unlock()
	if filter != nil {
		return filter, nil
	}
	r.boxMu.Lock()
	h, err := r.helperLocked()
	r.boxMu.Unlock()
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
		defer cancel()
		filter, err = h.PatchFilter(ctx)
	}
	if err != nil {
		return nil, faultOf(err, []string{"codespace-patch"})
	}
	r.patchMu.Lock()
	defer r.patchMu.Unlock()
	r.filter = filter
	return filter, nil
}

// startPatcher starts the program, which knows nothing yet.
func (r *Runner) startPatcher() (*patcher, error) {
	ours, theirs, err := patching.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := exec.Command(r.patchProgram, "serve")
	cmd.Env = []string{}
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r.patchMu.Lock()
	defer r.patchMu.Unlock()
	if r.over {
		ours.Close()
		return nil, ending()
	}
	if err := cmd.Start(); err != nil {
		ours.Close()
		r.log.Error("cannot start the patch helper", "error", err)
		return nil, &Fault{Code: SandboxUnavailable, Message: "codespace-patch cannot be started",
			Next: "keep the programs of one build of codespace in one directory; nothing was changed", Details: map[string]any{"step": "patch helper"}}
	}
	p := &patcher{conn: ours, process: cmd.Process, gone: make(chan struct{})}
	r.helpers.Go(func() {
		cmd.Wait()
		close(p.gone)
	})
	return p, nil
}

// frame is a request with what travels beside it.
type frame struct {
	patching.Request
	body []byte
	fds  []int
}

// ask has the helper do something. One that takes too long is killed.
func (p *patcher) ask(ctx context.Context, limit time.Duration, f frame) (patching.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(ctx, func() { p.process.Kill() })()
	var a patching.Answer
	err := p.conn.Send(f.Request, f.body, f.fds...)
	if err == nil {
		_, _, err = p.conn.Receive(&a)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return a, context.Cause(ctx)
	case err != nil:
		return a, fmt.Errorf("the patch helper is gone: %w", err)
	case a.Fault != nil:
		return a, a.Fault
	}
	return a, nil
}

// end ends a helper that is not applying anything and frees what it held.
func (p *patcher) end() {
	p.kill()
	message.CloseAll(p.held)
}

// kill ends a helper, whatever it does.
func (p *patcher) kill() {
	p.process.Kill()
	<-p.gone
	p.conn.Close()
}

// closePatches ends the helpers that hold a plan and waits for those that are applying one.
func (r *Runner) closePatches() {
	r.patchMu.Lock()
	r.over = true
	plans := r.plans
	r.plans = map[string]*patcher{}
	r.patchMu.Unlock()
	for _, p := range plans {
		p.expire.Stop()
		p.end()
	}
	r.helpers.Wait()
}

// patchFault is why a patch was refused. Nothing was changed.
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
	return fmt.Errorf("%w (%w)", err, &Fault{Code: RunnerUnavailable, Retryable: true, Message: "the patch could not be planned in time; nothing was changed", Next: "try again"})
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
