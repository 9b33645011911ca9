// Package gateway is the line: it decides whether a registered workspace permits
// an action, takes the workspace's lease and has the runner carry it out.
//
// It promises that no argument of a client widens what the registry permits, that
// at most one mutation of a workspace runs at a time on this host, and that a
// mutation whose answer was lost is reported as unknown and never sent again. It
// starts no program itself and touches no file of a workspace.
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"codespace/policy"
	"codespace/runner"
	"codespace/runner/wire"
)

// Principal is who is calling: a stdio client, a peer uid, a token.
type Principal struct {
	Name string // "stdio", "uid:1000", "token:ci"
}

// Start starts a runner; the gateway calls it on first use and after a loss.
type Start func(ctx context.Context, onEnded func(runner.Ended)) (*wire.Child, error)

// Gateway answers every tool. Its methods return *runner.Fault for every
// refusal a client can be told about.
type Gateway struct {
	registry *policy.Registry
	start    Start
	log      *slog.Logger

	starting sync.Mutex // one start at a time

	mu     sync.Mutex // guards what follows
	child  *wire.Child
	closed bool
	execs  map[string]*exec // by process id
	seq    uint64

	applying sync.WaitGroup // patches; added to under mu, unless closed
	keys
	books
}

// exec is what the gateway keeps of a command: whose it is and its lease.
type exec struct {
	id        string
	owner     Principal
	workspace string
	seq       uint64 // order of start
	lease     *Lease
	child     *wire.Child
	gone      func(limit time.Duration) bool // waits for its processes to be gone; nil if it may not have started
	over      chan struct{}                  // closed by end
}

// end frees what a command held; the caller holds Gateway.mu. Again is harmless.
func (e *exec) end() {
	select {
	case <-e.over:
	default:
		e.lease.Release()
		close(e.over)
	}
}

// New returns a gateway of the registry's workspaces. Without open it takes no patches.
func New(registry *policy.Registry, start Start, open OpenLedger, log *slog.Logger) *Gateway {
	return &Gateway{registry: registry, start: start, log: log, execs: map[string]*exec{}, books: books{openLedger: open}}
}

// beginPatch is to be followed by applying.Done.
func (g *Gateway) beginPatch() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ending()
	}
	g.applying.Add(1)
	return nil
}

// Close waits for patches that are being applied, ends the runner and with it every
// command, and waits for it.
func (g *Gateway) Close() {
	g.mu.Lock()
	g.closed = true // a patch that needs a runner now gets none
	g.mu.Unlock()
	defer g.closeBook()
	done := make(chan struct{})
	go func() {
		g.applying.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(stopTimeout):
	}
	g.mu.Lock()
	child := g.child
	g.mu.Unlock()
	if child == nil {
		return
	}
	child.Client.Close()
	hung := time.AfterFunc(stopTimeout, func() { child.Kill() })
	defer hung.Stop()
	child.Wait()
}

const (
	pingInterval  = time.Second
	pingDeadline  = 5 * time.Second // of a ping's answer: a stopped runner is ended
	startTimeout  = 30 * time.Second
	stopTimeout   = 15 * time.Second
	unseenTimeout = 500 * time.Millisecond // for cells to notice that their runner is gone
	treeTimeout   = 10 * time.Second       // of a dead runner's command to be gone too
	handleLife    = 16 * time.Minute       // of the owner's name, longer than the runner keeps a handle
)

// runner returns the running runner, starting one if there is none.
func (g *Gateway) runner(ctx context.Context) (*wire.Child, error) {
	g.starting.Lock()
	defer g.starting.Unlock()
	g.mu.Lock()
	child, closed := g.child, g.closed
	g.mu.Unlock()
	if closed {
		return nil, ending()
	}
	if child != nil && !child.Client.Lost() {
		return child, nil
	}
	// Its life is not the caller's: a client that is gone must not end it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	child, err := g.start(ctx, g.ended)
	if err != nil {
		g.log.Error("cannot start the runner", "error", err)
		return nil, fault(err, runner.RunnerUnavailable)
	}
	g.mu.Lock()
	g.child = child
	g.mu.Unlock()
	child.Client.Watch(pingInterval, pingDeadline, func() {
		g.log.Error("the runner does not answer and is ended", "pid", child.PID())
		child.Kill()
	})
	go g.bury(child)
	return child, nil
}

func ending() error {
	return &runner.Fault{Code: runner.RunnerUnavailable, Message: "codespace is ending", Next: "start it again"}
}

// bury waits for a runner's end and forgets what it had: its commands ended with
// it, so their leases are free.
func (g *Gateway) bury(child *wire.Child) {
	<-child.Client.Done()
	hung := time.AfterFunc(stopTimeout, func() { child.Kill() })
	err := child.Wait()
	hung.Stop()
	g.mu.Lock()
	closed := g.closed
	if g.child == child {
		g.child = nil
	}
	g.mu.Unlock()
	if !closed {
		g.log.Error("the runner is gone; its commands ended with it", "error", err)
	}
	for id, e := range g.ownedBy(child) {
		go g.buryExec(id, e)
	}
}

// buryExec frees the lease of a dead runner's command once its tree is gone too:
// the kernel is ending it. One that cannot be seen to end keeps its lease.
func (g *Gateway) buryExec(id string, e *exec) {
	gone := true
	if e.gone != nil {
		gone = e.gone(treeTimeout)
	} else {
		<-time.After(unseenTimeout) // nobody told whether it started
	}
	if !gone {
		g.log.Error("a command outlives its runner; its workspace stays locked until codespace ends", "process_id", id)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	e.end()
	delete(g.execs, id)
}

func (g *Gateway) ownedBy(child *wire.Child) map[string]*exec {
	g.mu.Lock()
	defer g.mu.Unlock()
	owned := map[string]*exec{}
	for id, e := range g.execs {
		if e.child == child {
			owned[id] = e
		}
	}
	return owned
}

func (g *Gateway) enter(id string, e *exec) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seq++
	e.id, e.seq = id, g.seq
	g.execs[id] = e
}

// ended frees a command's lease. The runner's socket delivers it before any
// answer that shows the command as exited.
func (g *Gateway) ended(e runner.Ended) {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := g.execs[e.ProcessID]
	if x == nil {
		return
	}
	x.end()
	time.AfterFunc(handleLife, func() { g.forget(e.ProcessID) })
}

func (g *Gateway) forget(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.execs, id)
}

// own returns one of p's processes. Another's handle cannot be told
// from an unknown one.
func (g *Gateway) own(p Principal, id string) (*exec, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.execs[id]; e != nil && e.owner == p {
		return e, nil
	}
	return nil, runner.NoProcess(id)
}

// fault makes sure that what a client is told has a code.
func fault(err error, otherwise runner.Code) error {
	var f *runner.Fault
	var d *policy.Denied
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &d):
		return &runner.Fault{Code: runner.Code(d.Code), Message: d.Reason, Next: d.Next}
	}
	return &runner.Fault{Code: otherwise, Message: "the runner could not be started", Next: "see the operator's log"}
}
