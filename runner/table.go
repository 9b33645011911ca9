package runner

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"codespace/openat2fs"
	"codespace/policy"
)

const (
	retainedFor = 15 * time.Minute // a finished handle stays this long,
	retainedMax = 64               // and at most so many of a workspace
)

// Runner is the process table of one environment and the sandboxes behind it.
type Runner struct {
	registry *policy.Registry
	log      *slog.Logger
	sandboxes
	roots
	patches
	watches

	mu        sync.Mutex // guards what follows
	processes map[string]*process
	order     []*process // by start; one that ended goes behind all
	live      map[string]int
	closed    bool
	tell      func(Ended)
	running   sync.WaitGroup // supervisors
}

// Place is where a runner finds itself: what it starts sandboxes with.
type Place struct {
	Helper   string   // absolute path of codespace-helper
	Patcher  string   // of codespace-patch
	Lifeline *os.File // reading end of a pipe that hangs up when the gateway is gone
	Instance *Instance
}

// New returns a runner of the registry's workspaces.
func New(registry *policy.Registry, at Place, log *slog.Logger) *Runner {
	r := &Runner{
		registry: registry, log: log, processes: map[string]*process{}, live: map[string]int{}, tell: func(Ended) {},
		patches:   patches{patchProgram: at.Patcher, planning: make(chan struct{}, maxPlanning), plans: map[string]*patcher{}, spares: map[string]*patcher{}},
		sandboxes: sandboxes{helperPath: at.Helper, instance: at.Instance, lifeline: at.Lifeline, registry: registry, log: log, boxes: map[string]*box{}},
		watches:   watches{watchLimits: defaultWatchLimits, watchLog: log},
	}
	r.rootGone = func(workspace string, is openat2fs.Identity) {
		r.roots.forget(workspace, is)
		r.sandboxes.drain(workspace, is)
	}
	return r
}

// Subscribe names who is told of each ended process, before it is shown as
// exited. Call it before the first Exec.
func (r *Runner) Subscribe(tell func(Ended)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell = tell
}

// Close ends every process and sandbox and waits until they are gone.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	for _, p := range r.order {
		if p.visible && !p.ended {
			p.cell.Kill()
		}
	}
	r.mu.Unlock()
	r.endWatches()
	r.running.Wait()
	r.closePatches()
	r.sandboxes.close()
	r.waitWatches()
}

var processID = regexp.MustCompile(`^proc_[0-9a-f]{32}$`)

// reserve enters a process that is about to start, within the workspace's limit.
func (r *Runner) reserve(p *process, limit int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return ending()
	case !processID.MatchString(p.id) || r.processes[p.id] != nil:
		return &Fault{Code: InvalidArgument, Message: "process id is malformed or taken"}
	case r.live[p.workspace] >= limit:
		return &Fault{Code: ProcessLimit, Retryable: true,
			Message: fmt.Sprintf("workspace %s has %d live processes, its limit", p.workspace, limit),
			Next:    "wait for one to exit or terminate one", Details: map[string]any{"limit": limit}}
	}
	r.live[p.workspace]++
	r.processes[p.id] = p
	r.order = append(r.order, p)
	return nil
}

func ending() *Fault {
	return &Fault{Code: RunnerUnavailable, Message: "the runner is ending", Next: "try again"}
}

// drop removes a process that did not start: no handle is left of it.
func (r *Runner) drop(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[p.workspace]--
	r.forget(p)
}

func (r *Runner) forget(p *process) {
	if p.expiry != nil {
		p.expiry.Stop() // it would keep the output
	}
	delete(r.processes, p.id)
	for i, q := range r.order {
		if q == p {
			r.order = append(r.order[:i], r.order[i+1:]...)
			return
		}
	}
}

// retire keeps a finished process for a while, the oldest giving way.
func (r *Runner) retire(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[p.workspace]--
	p.ended = true
	r.order = append(slices.DeleteFunc(r.order, func(q *process) bool { return q == p }), p)
	p.expiry = time.AfterFunc(retainedFor, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.forget(p)
	})
	finished := 0
	for i := len(r.order) - 1; i >= 0; i-- {
		q := r.order[i]
		if q.workspace != p.workspace || !q.ended {
			continue
		}
		if finished++; finished > retainedMax {
			r.forget(q)
		}
	}
}

func (r *Runner) find(id string) (*process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.processes[id]; p != nil && p.visible {
		return p, nil
	}
	return nil, NoProcess(id)
}

// NoProcess is the fault of an id that names nothing its caller can see.
func NoProcess(id string) *Fault {
	return &Fault{Code: ProcessNotFound, Message: "no process " + quoteID(id),
		Next: "handles end 15 minutes after the process, with the runner, and beyond the last 64 of a workspace; it may have run: look at what it changed before you start it again"}
}

// quoteID keeps what a client sent short and printable.
func quoteID(id string) string {
	if len(id) > 64 {
		id = id[:64] + "..."
	}
	return fmt.Sprintf("%q", id)
}

// Status tells whether a process runs or how it ended.
func (r *Runner) Status(ctx context.Context, id string) (Status, error) {
	p, err := r.find(id)
	if err != nil {
		return Status{}, err
	}
	return p.snapshot(), nil
}

// List tells the status of those of the processes that are known, in order.
func (r *Runner) List(ctx context.Context, ids []string) ([]Status, error) {
	list := []Status{}
	for _, id := range ids {
		if p, err := r.find(id); err == nil {
			list = append(list, p.snapshot())
		}
	}
	return list, nil
}

// Read returns output from a cursor on. A process whose streams were handed to
// it by the caller has none here.
func (r *Runner) Read(ctx context.Context, req ReadRequest) (ReadResult, error) {
	p, err := r.find(req.ProcessID)
	if err != nil {
		return ReadResult{}, err
	}
	res, err := p.out.Read(ctx, req.Cursor, req.MaxBytes, req.Wait)
	if err != nil {
		return ReadResult{}, err
	}
	res.State = p.state()
	return res, nil
}

// Terminate ends a process: TERM to its tree, the workspace's grace, then KILL.
// It does not wait; an ended process is no error.
func (r *Runner) Terminate(ctx context.Context, id string) error {
	p, err := r.find(id)
	if err != nil {
		return err
	}
	p.terminate()
	return nil
}

// Signal sends a signal to the process group of the command itself.
func (r *Runner) Signal(ctx context.Context, id string, sig int) error {
	p, err := r.find(id)
	if err != nil {
		return err
	}
	if sig < 1 || sig > 64 {
		return &Fault{Code: InvalidArgument, Message: fmt.Sprintf("no signal %d", sig), Next: "give 1 to 64"}
	}
	if p.state() == Exited {
		return &Fault{Code: ProcessNotRunning, Message: "process " + id + " has exited"}
	}
	return p.cell.Signal(sig, false)
}

// Support says what holds for a workspace's commands on this host, by building
// its sandbox if that does not stand yet.
func (r *Runner) Support(ctx context.Context, workspace string) (Support, error) {
	w, ok := r.registry.Workspace(workspace)
	if !ok {
		return Support{}, &Fault{Code: WorkspaceNotFound, Message: "no workspace " + quoteID(workspace)}
	}
	g, err := policy.Decide(w, policy.Action{Kind: policy.Execute})
	if err != nil {
		return Support{Reason: err.Error()}, nil
	}
	return r.sandboxes.support(ctx, g), nil
}
