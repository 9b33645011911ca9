package runner

import (
	"fmt"
	"os"
	"sync"
	"time"

	"codespace/policy"
	"codespace/sandbox"

	"golang.org/x/sys/unix"
)

const (
	// drainFor is how long background processes may go on writing after the
	// command itself has ended and while somebody holds its output.
	drainFor = 250 * time.Millisecond
	// settleFor is how long they may take to end by themselves once nobody holds it:
	// most were ending already.
	settleFor = 10 * time.Millisecond
	// killFor is how long a killed tree may take to report its own status before
	// its namespace is ended without one.
	killFor = 500 * time.Millisecond
	// closeFor is how long an ended command's output may be held open by a
	// descriptor that travelled to another command.
	closeFor = time.Second
)

// process is one command from its request to its eviction.
type process struct {
	id, workspace string
	argv          []string
	attached, tty bool
	limits        policy.Limits

	// Set before the supervisor starts and constant from then on.
	cell         *sandbox.Cell
	stdin        *stdin   // nil when attached
	pipe, stdout *os.File // our ends; nil when attached or, pipe, with a terminal
	from, to     *os.File // the caller's streams that a terminal is joined with
	lease        *os.File // nil if none; held until the tree is gone
	out          *Output
	tree         sandbox.Tree
	leave        func() // gives the sandbox back

	stop    chan struct{} // closed by terminate
	once    sync.Once
	event   chan sandbox.Event // closed when PID 1 is gone
	drained chan struct{}      // closed at the end of output that is kept here

	// Guarded by Runner.mu.
	ended, visible bool
	expiry         *time.Timer // of a finished handle

	mu     sync.Mutex // guards status
	status Status
}

func newProcess(req ExecRequest, l policy.Limits) *process {
	return &process{
		id: req.ProcessID, workspace: req.Workspace, argv: req.Argv, attached: req.Attached, tty: req.TTY, limits: l,
		out: NewOutput(l.Output), stop: make(chan struct{}), event: make(chan sandbox.Event, 2), drained: make(chan struct{}),
		status: Status{ProcessID: req.ProcessID, Workspace: req.Workspace, State: Running, TTY: req.TTY},
	}
}

func (p *process) terminate() { p.once.Do(func() { close(p.stop) }) }

func (p *process) state() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status.State
}

func (p *process) snapshot() Status {
	p.mu.Lock()
	s := p.status
	p.mu.Unlock()
	s.OutputTotal, s.RetainedFrom, s.EOF = p.out.Extent()
	if s.State == Running {
		spent := p.cell.Leaf.Spent()
		s.Usage = Usage{CPU: spent.CPU, PeakMemory: spent.PeakMemory, PIDs: max(spent.PeakPIDs-1, 0)}
	}
	return s
}

// supervise lives from Started until the tree is gone, then settles the status.
func (r *Runner) supervise(p *process) {
	p.pump()
	go p.listen()
	w := watch{process: p}
	w.untilEmpty()
	if !w.last.Empty { // else only our own PID 1 is left, and it is ending
		p.cell.Gone()
	}
	p.finishOutput()
	status := w.verdict(p.cell.Leaf.Spent())
	if p.lease != nil {
		p.lease.Close()
	}
	p.leave()
	r.mu.Lock()
	tell := r.tell
	r.mu.Unlock()
	p.mu.Lock() // nobody sees Exited before the gateway was told, nor Running after
	tell(Ended{ProcessID: p.id, Workspace: p.workspace, Termination: status.Termination, ExitCode: status.ExitCode, Signal: status.Signal})
	p.status = status
	p.mu.Unlock()
	p.closeStreams()
	r.retire(p)
	p.cell.Close()
}

// listen turns the cell's messages into events.
func (p *process) listen() {
	defer close(p.event)
	for {
		e, err := p.cell.Next()
		if err != nil {
			return
		}
		p.event <- e
	}
}

// watch is the supervisor's state: what has happened to one process so far.
type watch struct {
	*process
	exited  *sandbox.Event // the argv's own end, nil while it runs
	last    sandbox.Event
	reason  Termination // ByTimeout or ByTerminate, "" if neither
	stopped <-chan struct{}
}

// untilEmpty returns when no process of the tree is left, or when PID 1 is gone.
func (w *watch) untilEmpty() {
	wall, grace, hard, drain := timer(w.limits.Wall), timer(0), timer(0), timer(0)
	defer func() { wall.Stop(); grace.Stop(); hard.Stop(); drain.Stop() }()
	w.stopped = w.stop
	var drained <-chan struct{}
	for {
		select {
		case e, ok := <-w.event:
			if !ok || e.Empty {
				w.last = e
				return
			}
			w.exited = &e
			wall.Stop()
			drain.Reset(drainFor)
			if !w.attached {
				drained = w.drained
			}
		case <-wall.C:
			w.end(ByTimeout, grace)
		case <-w.stopped:
			w.end(ByTerminate, grace)
			wall.Stop()
		case <-grace.C: // through PID 1, so that the argv's own status is still told
			w.cell.Signal(int(unix.SIGKILL), true)
			hard.Reset(killFor)
		case <-hard.C:
			w.cell.Kill()
		case <-drain.C:
			w.cell.Kill()
		case <-drained:
			drained = nil
			drain.Reset(settleFor)
		}
	}
}

// end begins an end that was not the command's own idea: TERM, then grace.
func (w *watch) end(why Termination, grace *time.Timer) {
	w.stopped = nil
	if w.reason == "" && w.exited == nil {
		w.reason = why
	}
	w.cell.Signal(int(unix.SIGTERM), true)
	grace.Reset(w.limits.Grace)
}

func timer(d time.Duration) *time.Timer {
	t := time.NewTimer(max(d, time.Hour))
	if d > 0 {
		t.Reset(d)
	} else {
		t.Stop()
	}
	return t
}

// verdict says how the process ended, from what PID 1 told and the kernel counted.
func (w *watch) verdict(spent sandbox.Spent) Status {
	w.mu.Lock()
	s := w.status
	w.mu.Unlock()
	s.State, s.Ended, s.Termination = Exited, time.Now(), Lost
	s.Usage = Usage{CPU: spent.CPU, PeakMemory: spent.PeakMemory, PIDs: max(spent.PeakPIDs-1, 0)}
	if w.exited != nil {
		w.own(&s)
	}
	killed := s.Termination == Lost || s.Signal == "SIGKILL" || s.ExitCode != nil && *s.ExitCode == 128+int(unix.SIGKILL)
	switch {
	case w.reason != "":
		s.Termination = w.reason
	case spent.OOMKills > 0 && killed:
		s.Termination = ByOOM
	}
	return s
}

// signalName is the name of a signal; a real-time one is named by its distance
// from SIGRTMIN as the C library counts (signal(7)).
func signalName(sig unix.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("SIGRTMIN+%d", int(sig)-34)
}

// own fills in the argv's own wait status and usage.
func (w *watch) own(s *Status) {
	status := w.exited.Status
	s.Termination = ByExit
	if status.Signaled() {
		s.Termination = BySignal
		s.SignalNumber = int(status.Signal())
		s.Signal = signalName(status.Signal())
	} else {
		code := status.ExitStatus()
		s.ExitCode = &code
	}
	if w.last.Empty { // everything was reaped and counted, without our own PID 1
		s.Usage.CPU = w.last.CPU
	}
	s.Usage.CPU = max(s.Usage.CPU, w.exited.CPU)
	s.Usage.PeakMemory = max(s.Usage.PeakMemory, w.exited.MaxRSS, w.last.MaxRSS)
}
