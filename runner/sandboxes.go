package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"codespace/policy"
	"codespace/sandbox"
	"codespace/sandbox/message"

	"golang.org/x/sys/unix"
)

// sandboxes owns the helper and one sandbox per workspace, made on first use.
type sandboxes struct {
	helperPath string
	instance   *Instance
	lifeline   *os.File // hangs up when the gateway is gone
	registry   *policy.Registry
	log        *slog.Logger

	boxMu  sync.Mutex // guards what follows
	helper *helper
	boxes  map[string]*box // by workspace: the one new commands enter
	made   int
	pooled int  // prepared cells in all boxes
	ended  bool // nothing is prepared any more

	refills sync.WaitGroup // background work on cells
}

// helper is one running codespace-helper.
type helper struct {
	*sandbox.Helper
	cmd    *exec.Cmd
	prefix string        // of its sandboxes' ids
	late   int           // sandboxes that were not ready in time; guarded by sandboxes.boxMu
	gone   chan struct{} // closed once it is reaped
}

// box is a workspace's sandbox. It is put away when it is stale and empty.
type box struct {
	id, digest string
	root       sandbox.Root
	helper     *helper
	uid        *os.File // holds the host uid
	ready      chan struct{}
	receipt    sandbox.Receipt // this and err are set before ready is closed
	err        error

	// Guarded by sandboxes.boxMu.
	live  int
	stale bool
	pools map[sandbox.Wish]*pool
	idle  *time.Timer
	used  time.Time // when its last command ended
}

// enter returns the sandbox of a decided workspace, building it if there is none
// or if policy or root changed since.
func (s *sandboxes) enter(ctx context.Context, g policy.Grant) (*box, error) {
	root, st, err := openRoot(g.Workspace.Root)
	if err != nil {
		return nil, err
	}
	if err := writableRoot(g, root.Path, st); err != nil {
		return nil, err
	}
	s.boxMu.Lock()
	b := s.boxes[g.Workspace.ID]
	if b != nil && (b.digest != g.Digest || b.root != root || b.helper.lost()) {
		s.retireLocked(b)
		b = nil
	}
	build := b == nil
	if build {
		if b, err = s.newBoxLocked(g, root); err != nil {
			s.boxMu.Unlock()
			return nil, err
		}
	}
	b.live++
	s.boxMu.Unlock()
	if build {
		s.build(b, g, st)
	}
	select {
	case <-b.ready:
		err = b.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		s.leave(b)
		return nil, err
	}
	return b, nil
}

func (s *sandboxes) newBoxLocked(g policy.Grant, root sandbox.Root) (*box, error) {
	h, err := s.helperLocked()
	if err != nil {
		return nil, err
	}
	s.made++
	b := &box{id: fmt.Sprintf("%s-%d", h.prefix, s.made), digest: g.Digest, root: root, helper: h, ready: make(chan struct{}), pools: map[sandbox.Wish]*pool{}}
	b.used = time.Now()
	b.idle = time.AfterFunc(boxIdle, func() { s.idled(b) })
	s.boxes[g.Workspace.ID] = b
	return b, nil
}

// build prepares the sandbox and tells everyone who waits for it.
func (s *sandboxes) build(b *box, g policy.Grant, st unix.Stat_t) {
	b.receipt, b.err = s.prepare(b, g, st)
	if b.err != nil {
		s.boxMu.Lock()
		s.retireLocked(b)
		s.boxMu.Unlock()
	}
	close(b.ready)
}

func (s *sandboxes) prepare(b *box, g policy.Grant, st unix.Stat_t) (sandbox.Receipt, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), prepareTimeout, errors.New("the sandbox was not ready within "+prepareTimeout.String()))
	defer cancel()
	who, uid, err := identify(s.registry.Identity, g.Workspace, st)
	if err != nil {
		return sandbox.Receipt{}, err
	}
	b.uid = uid
	plan := sandbox.NewPlan(g, b.id, s.registry.State.Dir)
	if err := makeCaches(plan.Caches); err != nil {
		return sandbox.Receipt{}, err
	}
	plan.Root, plan.Identity = b.root, who
	receipt, err := b.helper.Prepare(ctx, plan)
	if ctx.Err() != nil {
		s.late(b, 1)
	}
	return receipt, err
}

// mostLate is how many sandboxes may hang while they are built, as on a dead network
// file system, before the helper that they are stuck in is ended.
const mostLate = 3

// late is called when a sandbox was not ready in time, or one of its cells. It is
// not used again. If it is the helper that hangs, that is ended, and all it owns:
// else the commands of other workspaces, and those that run in this one, go on.
// stuck counts builds that may never end.
func (s *sandboxes) late(b *box, stuck int) {
	s.boxMu.Lock()
	b.helper.late += stuck
	s.retireLocked(b)
	full := b.helper.late >= mostLate
	s.boxMu.Unlock()
	s.log.Error("a sandbox was not ready in time", "sandbox", b.id)
	ctx, cancel := context.WithTimeout(context.Background(), helperTimeout)
	defer cancel()
	if err := b.helper.Release(ctx, "none"); err != nil || full {
		s.log.Error("the sandbox helper hangs and is ended", "error", err)
		b.helper.cmd.Process.Kill()
	}
}

// errCellLate is the cause of a cell's time-out.
var errCellLate = errors.New("the cell was not ready within " + cellTimeout.String())

// cell makes one cell.
func (s *sandboxes) cell(ctx context.Context, b *box, w sandbox.Wish) (*sandbox.Cell, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cellTimeout, errCellLate)
	defer cancel()
	c, err := b.helper.Cell(ctx, b.id, w)
	if errors.Is(err, errCellLate) {
		s.late(b, 0)
	}
	var f *sandbox.Failure
	if errors.As(err, &f) { // a sandbox that makes no cells is replaced
		s.boxMu.Lock()
		s.retireLocked(b)
		s.boxMu.Unlock()
	}
	return c, err
}

// leave gives a box back after a command.
func (s *sandboxes) leave(b *box) {
	s.boxMu.Lock()
	defer s.boxMu.Unlock()
	if b.live--; b.live == 0 && !b.stale {
		b.used = time.Now()
		b.idle.Reset(poolIdle)
	}
	s.putAwayLocked(b)
}

// retireLocked takes a box out of use, once; it goes when its last command has ended.
func (s *sandboxes) retireLocked(b *box) {
	if b.stale {
		return
	}
	for id, c := range s.boxes {
		if c == b {
			delete(s.boxes, id)
		}
	}
	b.stale = true
	b.idle.Stop()
	s.drainLocked(b)
	s.putAwayLocked(b)
}

func (s *sandboxes) putAwayLocked(b *box) {
	if !b.stale || b.live > 0 {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), prepareTimeout)
		defer cancel()
		err := b.helper.Release(ctx, b.id)
		if err != nil && !errors.Is(err, sandbox.ErrHelperLost) {
			s.log.Error("cannot put a sandbox away; the helper is ended", "sandbox", b.id, "error", err)
			b.helper.cmd.Process.Kill()
		}
		if err != nil {
			<-b.helper.gone // its uid must not go to another while it lives
		}
		if b.uid != nil {
			b.uid.Close()
		}
	}()
}

func (h *helper) lost() bool {
	select {
	case <-h.Done():
		return true
	default:
		return false
	}
}

// helperLocked returns the running helper, starting one if there is none. It is
// the only program the runner ever starts, by its absolute path.
func (s *sandboxes) helperLocked() (*helper, error) {
	if s.ended {
		return nil, ending()
	}
	if s.helper != nil && !s.helper.lost() {
		return s.helper, nil
	}
	ours, theirs, err := message.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	stage, prefix, err := s.instance.NewStage()
	if err != nil {
		ours.Close()
		return nil, err
	}
	cmd := exec.Command(s.helperPath, "serve", stage)
	cmd.Env = []string{}
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{theirs, s.lifeline}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		ours.Close()
		s.log.Error("cannot start the sandbox helper", "error", err)
		return nil, &Fault{Code: SandboxUnavailable, Message: "codespace-helper cannot be started",
			Next: "keep codespace, codespace-runner and codespace-helper of one build in one directory; nothing was run", Details: map[string]any{"step": "helper"}}
	}
	client, err := sandbox.NewHelper(ours)
	if err != nil {
		cmd.Process.Kill()
		return nil, err
	}
	h := &helper{Helper: client, cmd: cmd, prefix: prefix, gone: make(chan struct{})}
	go func() {
		cmd.Wait()
		client.Close()
		s.instance.sweepHelper(stage, prefix)
		close(h.gone)
	}()
	s.helper = h
	return h, nil
}

// close ends the helper, and every sandbox with it, and waits for it.
func (s *sandboxes) close() {
	s.boxMu.Lock()
	h := s.helper
	s.ended = true
	for _, b := range s.boxes {
		b.idle.Stop()
		s.drainLocked(b)
	}
	s.boxMu.Unlock()
	s.refills.Wait()
	if h == nil {
		return
	}
	h.Close()
	hung := time.AfterFunc(10*time.Second, func() { h.cmd.Process.Kill() })
	<-h.gone
	hung.Stop()
}

// support enters a workspace's sandbox to say what holds in it.
func (s *sandboxes) support(ctx context.Context, g policy.Grant) Support {
	out := Support{Cgroup: cgroupKind(), Network: "own network namespace with loopback only"}
	b, err := s.enter(ctx, g)
	if err != nil {
		out.Reason = faultOf(err, []string{""}).Error()
		return out
	}
	defer s.leave(b)
	out.Available, out.Layers = true, b.receipt.Layers
	return out
}

func cgroupKind() string {
	_, unified := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	_, hybrid := os.Stat("/sys/fs/cgroup/unified/cgroup.procs")
	_, v1 := os.Stat("/sys/fs/cgroup/memory/cgroup.procs")
	switch {
	case unified == nil:
		return "v2"
	case v1 == nil && hybrid == nil:
		return "hybrid"
	case v1 == nil:
		return "v1"
	}
	return "none"
}
