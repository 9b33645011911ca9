package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"codespace/policy"
	"codespace/sandbox"
	"codespace/sandbox/message"
)

const (
	prepareTimeout = 60 * time.Second // a sandbox; measured well below a second
	cellTimeout    = 20 * time.Second // a cell; measured in milliseconds
	helperTimeout  = 5 * time.Second  // the simplest answer of a helper
)

// Exec runs one command: decide again, reserve, sandbox, cell, launch. It
// returns once the command's own image runs, or with the fault that kept it from
// running. files are stdin, stdout, stderr for an attached command, then
// optionally a lease that is held until the tree is gone; Exec owns them.
func (r *Runner) Exec(ctx context.Context, req ExecRequest, files []*os.File) (res ExecResult, err error) {
	defer func() {
		if err != nil {
			message.CloseAll(files)
		}
	}()
	grant, err := r.decide(req)
	if err != nil {
		return ExecResult{}, err
	}
	p := newProcess(req, grant.Workspace.Limits)
	if err := r.reserve(p, grant.Workspace.Limits.Processes); err != nil {
		return ExecResult{}, err
	}
	reserved := true
	defer func() {
		if reserved { // refused, or a panic on its way to who recovers it
			r.drop(p)
		}
	}()
	res, err = r.start(ctx, p, grant, files)
	reserved = err != nil
	if err != nil {
		var failure *sandbox.Failure
		if !errors.As(err, &failure) || !failure.Launch { // with what a client is not told
			r.log.Error("a command did not start", "workspace", p.workspace, "error", err)
		}
		return ExecResult{}, faultOf(err, req.Argv)
	}
	return res, nil
}

// decide looks the workspace up in the runner's own registry and decides anew.
func (r *Runner) decide(req ExecRequest) (policy.Grant, error) {
	g, err := r.grant(req.Workspace, req.Digest, policy.Action{Kind: policy.Execute, Access: req.Access})
	if err == nil && len(req.Argv) == 0 {
		err = &Fault{Code: InvalidCommand, Message: "command is empty", Next: "give the program and its arguments"}
	}
	return g, err
}

// grant decides an action that the gateway has decided by the policy of this digest.
func (r *Runner) grant(workspace, digest string, a policy.Action) (policy.Grant, error) {
	w, ok := r.registry.Workspace(workspace)
	if !ok {
		return policy.Grant{}, &Fault{Code: WorkspaceNotFound, Message: "no workspace " + quoteID(workspace)}
	}
	g, err := policy.Decide(w, a)
	var denied *policy.Denied
	if errors.As(err, &denied) {
		return g, &Fault{Code: Code(denied.Code), Message: denied.Reason, Next: denied.Next}
	}
	if err == nil && g.Digest != digest {
		err = &Fault{Code: RunnerUnavailable, Retryable: true, Message: "policy of workspace " + w.ID + " changed", Next: "try again"}
	}
	return g, err
}

func (r *Runner) start(ctx context.Context, p *process, g policy.Grant, files []*os.File) (ExecResult, error) {
	wish := sandbox.Wish{Writable: g.Access == policy.AccessWrite, Terminal: p.tty}
	box, cell, err := r.sandboxes.obtain(ctx, g, wish)
	if err != nil {
		return ExecResult{}, err
	}
	p.leave = func() {
		r.sandboxes.refillIn(refillIdle, box, wish)
		r.sandboxes.leave(box)
	}
	var unsure *sandbox.Unsure
	err = p.launch(cell, g.Workspace, files)
	if errors.As(err, &unsure) {
		r.log.Error("a command is lost", "process_id", p.id, "error", err)
		cell.Kill() // it may have run: it is shown as started and lost
	} else if err != nil {
		cell.Close()
		p.leave()
		return ExecResult{}, err
	}
	res := ExecResult{Started: p.status.Started, Receipt: p.status.Receipt, Tree: p.tree}
	r.sandboxes.refillIn(refillBusy, box, wish)
	return res, r.release(p)
}

// release makes a started command visible and supervised, unless the runner is
// ending: then the command ends here.
func (r *Runner) release(p *process) error {
	r.mu.Lock()
	closed := r.closed
	if !closed {
		p.visible = true
		r.running.Go(func() { r.supervise(p) })
	}
	r.mu.Unlock()
	if !closed {
		return nil
	}
	p.cell.Close()
	p.closeStreams()
	p.leave()
	return ending()
}

// launch releases the cell with the command's streams.
func (p *process) launch(cell *sandbox.Cell, w policy.Workspace, files []*os.File) error {
	p.cell, p.tree = cell, cell.Tree
	l := sandbox.Launch{Argv: p.argv, Env: sandbox.Environment(w, p.tty), Cwd: "."}
	theirs, rest, err := p.connect(files)
	if err != nil {
		return err
	}
	l.Files = theirs
	p.status.Receipt = cell.Receipt
	p.status.Started = time.Now()
	err = launchWithin(cell, l)
	message.CloseAll(theirs[:]) // the command has its own
	p.argv = nil
	var unsure *sandbox.Unsure
	if err != nil && !errors.As(err, &unsure) {
		p.closeStreams()
		return err
	}
	if len(rest) > 0 {
		p.lease = rest[0]
	}
	return err
}

func launchWithin(cell *sandbox.Cell, l sandbox.Launch) error {
	hung := time.AfterFunc(cellTimeout, cell.Kill)
	defer hung.Stop()
	return cell.Launch(l)
}

// faultOf turns what went wrong on the way to a running command into what a
// client is told.
func faultOf(err error, argv []string) error {
	var fault *Fault
	var failure *sandbox.Failure
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &failure) && failure.Launch:
		return spawnFault(failure, argv)
	case errors.As(err, &failure):
		return sandboxFault(failure)
	}
	return &Fault{Code: SandboxUnavailable, Retryable: true, Message: "cannot prepare a sandbox: " + clientText(err.Error()), Next: "try again; the command did not run"}
}

func sandboxFault(f *sandbox.Failure) *Fault {
	if path, is := f.MountBelow(); is {
		return &Fault{Code: PathEscape, Message: "a mount lies below the workspace: " + path,
			Next: "have the operator unmount it or register it as a workspace of its own (findmnt shows it); nothing was run", Details: map[string]any{"reason": "mount", "path": path}}
	}
	remedy := f.Remedy()
	return &Fault{Code: SandboxUnavailable, Message: "cannot build the sandbox: " + clientText(f.Error()), Next: remedy.String() + "; nothing was run",
		Details: map[string]any{"step": f.Step, "index": f.Index, "errno": f.Errno, "knob": remedy.Knob, "show": remedy.Show, "fix": remedy.Fix}}
}

// hostPath is an absolute path that is not of the view's own parts.
var hostPath = regexp.MustCompile(`/[^\s:;,"']*`)

// clientText hides paths of the host: what a client is told names none outside its
// workspace. The operator's log has the whole text.
func clientText(s string) string {
	return hostPath.ReplaceAllStringFunc(s, func(p string) string {
		for _, known := range []string{"/proc", "/dev", "/sys", "/tmp", "/etc", "/usr", "/home/sandbox"} {
			if p == known || strings.HasPrefix(p, known+"/") && known != "/tmp" {
				return p
			}
		}
		return "(a path of the host)"
	})
}

var spawnAdvice = map[string]string{
	"not found":           "no such program in the sandbox; check the name, or ask the operator to mount its directory",
	"not executable":      "set its executable bit or run it through its interpreter",
	"is a directory":      "name a program, not a directory",
	"missing interpreter": "the file is there but the interpreter or loader it names is not; install that or run it through another",
	"bad format":          "it is neither a program of this machine nor a script with a #! line; run it through its interpreter",
	"too long":            "one argument is longer than 128 KiB or all together than the stack limit allows; pass the data through a file",
}

func spawnFault(f *sandbox.Failure, argv []string) *Fault {
	reason, next := f.Reason, spawnAdvice[f.Reason]
	if f.Step != "exec" || next == "" {
		reason, next = f.Error(), "the command did not run; try again"
	}
	return &Fault{Code: ProcessSpawnFailed, Message: fmt.Sprintf("cannot start %s: %s", quoteID(argv[0]), reason), Next: next,
		Details: map[string]any{"reason": f.Reason, "step": f.Step, "errno": f.Errno}}
}
