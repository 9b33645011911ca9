package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"codespace/runner"
	"codespace/runner/wire"
)

// patience is for one answer.
const patience = 60 * time.Second

// runnerSide is a runner process and our end of its socket.
type runnerSide struct {
	*ground
	child    *wire.Child
	instance *runner.Instance

	mu   sync.Mutex // guards ends
	ends map[string]chan runner.Ended
}

func (g *ground) startRunner(ctx context.Context) (*runnerSide, error) {
	r := &runnerSide{ground: g, ends: map[string]chan runner.Ended{}}
	var err error
	if r.instance, err = runner.NewInstance(); err != nil {
		return nil, err
	}
	settings := g.settings
	settings.Instance = r.instance.Dir()
	stdin, err := settings.Encode()
	if err == nil {
		r.child, err = wire.Spawn(ctx, wire.Program{
			Path: g.program("codespace-runner"), Args: []string{"serve"}, Dir: r.instance.SocketDir(),
			Digest: runner.Settings{}.Digest(g.registry), Stdin: stdin, OnEnded: r.ended,
		})
	}
	if err != nil {
		r.instance.Remove()
		return nil, err
	}
	return r, nil
}

func (r *runnerSide) close() {
	r.child.Client.Close()
	hung := time.AfterFunc(patience, func() { r.child.Kill() })
	defer hung.Stop()
	r.child.Wait()
	r.instance.Remove()
}

func (r *runnerSide) ended(e runner.Ended) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends[e.ProcessID] <- e // one each, and there is room for it
	delete(r.ends, e.ProcessID)
}

// request is for one command in a workspace, and where its end will be told.
func (r *runnerSide) request(at place, argv ...string) (runner.ExecRequest, <-chan runner.Ended) {
	var id [16]byte
	rand.Read(id[:])
	request := runner.ExecRequest{
		ProcessID: "proc_" + hex.EncodeToString(id[:]), Workspace: at.workspace.ID, Digest: at.grant.Digest,
		Access: at.grant.Access, Argv: argv,
	}
	end := make(chan runner.Ended, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends[request.ProcessID] = end
	return request, end
}

// await wants a command to have ended well.
func await(ctx context.Context, end <-chan runner.Ended) error {
	select {
	case e := <-end:
		if e.ExitCode == nil || *e.ExitCode != 0 {
			return fmt.Errorf("a command ended with %+v", e)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *runnerSide) sample(ctx context.Context, w *stopwatch) error { return r.run(ctx, w, r.place) }

// run is one command as the gateway sees it, from the request until its ending is
// known.
func (r *runnerSide) run(ctx context.Context, w *stopwatch, at place) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, end := r.request(at, command)
	since := ticks()
	w.start()
	result, err := r.child.Client.Exec(ctx, request, nil)
	if err != nil {
		return err
	}
	w.lap("exec: asked for to started")
	if err := await(ctx, end); err != nil {
		return err
	}
	w.lap("started to ended, its tree gone")
	if result.Tree.Birth < since {
		w.note(prepared, 1)
	}
	return nil
}

// prepared counts commands whose cell is older than their request, by the clock by
// which the kernel tells when a process was born. A cell made less than a tick,
// 10 ms, before the request is not counted.
const prepared = "prepared"

func found(t *taken) string {
	return fmt.Sprintf("found a prepared cell: %d of %d", len(t.notes[prepared]), len(t.whole))
}

// ticks is the time since boot in the unit of Tree.Birth: USER_HZ, 100 here, which
// is also what /proc/uptime is given in.
func ticks() uint64 {
	var seconds, hundredths uint64
	uptime, _, _ := strings.Cut(line("/proc/uptime"), " ")
	fmt.Sscanf(uptime, "%d.%d", &seconds, &hundredths)
	return seconds*100 + hundredths
}

func atRunner(g *ground) (*subject, error) {
	r, err := g.startRunner(context.Background())
	if err != nil {
		return nil, err
	}
	return &subject{name: "exec_command to exit seen, at the runner", sample: r.sample, close: r.close, remark: found}, nil
}

// firstAtRunner has a runner that has not run anything yet for each command.
func firstAtRunner(g *ground) *subject {
	return &subject{name: "exec_command to exit seen, at a new runner", sample: func(ctx context.Context, w *stopwatch) error {
		r, err := g.startRunner(ctx)
		if err != nil {
			return err
		}
		defer r.close()
		return r.sample(ctx, w)
	}}
}
