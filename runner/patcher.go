package runner

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"codespace/openat2fs"
	"codespace/policy"
	"codespace/runner/patching"
	"codespace/sandbox"
	"codespace/sandbox/message"
)

// patches are the patch helpers that hold a plan.
type patches struct {
	patchProgram string        // absolute path of codespace-patch
	planning     chan struct{} // holds one for each patch that is being planned

	patchMu     sync.Mutex // guards what follows
	filter      []byte     // of patch helpers, once compiled
	plans       map[string]*patcher
	spares      map[string]*patcher // by workspace: set up, waiting for a patch
	patchesOver bool                // no helper is started any more
	helpers     sync.WaitGroup      // that run, and those that are being prepared
}

// maxSpares bounds the helpers that wait, in all workspaces; each takes a few MiB.
const maxSpares = 8

// patcher is one running codespace-patch.
type patcher struct {
	conn    *patching.Conn
	process *os.Process
	gone    chan struct{} // closed once it is reaped
	held    []*os.File    // open as long as it lives

	grant   policy.Grant
	root    *root
	planned patching.Planned
	expire  *time.Timer // of a plan or a spare that nobody takes
}

// patcher returns a helper that is locked down: one that waits, if there is one for
// this policy and root, or a new one.
func (r *Runner) patcher(ctx context.Context, g policy.Grant) (*patcher, error) {
	root, err := r.roots.open(g)
	if err != nil {
		return nil, err
	}
	r.watch(g.Workspace.ID, root)
	r.patchMu.Lock()
	p := r.spares[g.Workspace.ID]
	delete(r.spares, g.Workspace.ID)
	r.patchMu.Unlock()
	if p == nil {
		return r.newPatcher(ctx, g, root)
	}
	p.expire.Stop()
	if p.grant.Digest == g.Digest && p.root == root && p.alive() {
		return p, nil
	}
	p.end()
	return r.newPatcher(ctx, g, root)
}

// prepareSpare prepares the helper of the workspace's next patch. That there is none
// costs its start.
func (r *Runner) prepareSpare(g policy.Grant) {
	r.patchMu.Lock()
	defer r.patchMu.Unlock()
	if r.patchesOver || r.spares[g.Workspace.ID] != nil || len(r.spares) >= maxSpares {
		return
	}
	r.helpers.Go(func() {
		root, err := r.roots.open(g)
		if err != nil {
			return
		}
		if p, err := r.newPatcher(context.Background(), g, root); err == nil {
			r.spare(p)
		}
	})
}

func (r *Runner) spare(p *patcher) {
	id := p.grant.Workspace.ID
	r.patchMu.Lock()
	taken := r.patchesOver || r.spares[id] != nil
	if !taken {
		r.spares[id] = p
		p.expire = time.AfterFunc(poolIdle, func() { r.dropSpare(id, p) })
	}
	r.patchMu.Unlock()
	if taken {
		p.end()
	}
}

func (r *Runner) dropSpare(id string, p *patcher) {
	r.patchMu.Lock()
	mine := r.spares[id] == p
	if mine {
		delete(r.spares, id)
	}
	r.patchMu.Unlock()
	if mine {
		p.end()
	}
}

func (p *patcher) alive() bool {
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

// newPatcher starts a helper, which is locked down when it returns.
func (r *Runner) newPatcher(ctx context.Context, g policy.Grant, root *root) (*patcher, error) {
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
	p.grant, p.root = g, root
	if err := p.setUp(ctx, setup, root.Root); err != nil {
		p.kill()
		return nil, patchFault(err)
	}
	return p, nil
}

func (p *patcher) setUp(ctx context.Context, s patching.Setup, root *openat2fs.Root) error {
	fd, err := root.Dup()
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	_, err = p.ask(ctx, planTimeout, frame{Request: patching.Request{Setup: &s}, fds: []int{fd}})
	return err
}

func descriptors(files []*os.File) []int {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	return fds
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
	if r.patchesOver {
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
	r.patchesOver = true
	waiting := slices.Concat(slices.Collect(maps.Values(r.plans)), slices.Collect(maps.Values(r.spares)))
	clear(r.plans)
	clear(r.spares)
	r.patchMu.Unlock()
	for _, p := range waiting {
		p.expire.Stop()
		p.end()
	}
	r.helpers.Wait()
}
