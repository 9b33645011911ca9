package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"codespace/runner"
	"codespace/runner/files"
	"codespace/runner/patching"
)

// Uncertain is the error of a request that may or may not have been carried out, and
// that is never sent again: ID is the process or plan it was about. It does not unwrap:
// its cause says nothing about that.
type Uncertain struct {
	ID    string
	Cause error
}

func (u *Uncertain) Error() string {
	return fmt.Sprintf("cannot tell what became of %s: %v", u.ID, u.Cause)
}

// Exec starts a command. files are stdin, stdout and stderr if the request is
// attached, then, optionally, the lease; they stay the caller's. With an
// *Uncertain the command may run, also after ctx has ended; with every other
// error it does not.
func (c *Client) Exec(ctx context.Context, req runner.ExecRequest, files []*os.File) (runner.ExecResult, error) {
	if err := filesFor(req.Attached, len(files)); err != nil {
		return runner.ExecResult{}, err
	}
	rights, err := dupAll(files)
	if err != nil {
		return runner.ExecResult{}, fmt.Errorf("%w (%w)", err, unavailable("the descriptors cannot be passed"))
	}
	m := message{Kind: kindExec, frame: frame{body: packArgv(req.Argv), rights: rights}}
	req.Argv = nil
	result, err := once[runner.ExecResult](ctx, c, m, req)
	return result, about(req.ProcessID, err)
}

// about says what an *Uncertain is about.
func about(id string, err error) error {
	if u, ok := err.(*Uncertain); ok {
		u.ID = id
	}
	return err
}

// once sends a request that must not be repeated where its fate is not known.
func once[T any](ctx context.Context, c *Client, m message, payload any) (T, error) {
	var result, none T
	answer, sent, err := c.exchange(ctx, m, payload)
	switch {
	case err != nil && !sent:
		return none, err
	case err != nil:
		return none, &Uncertain{Cause: err}
	case answer.Fault != nil && answer.Uncertain:
		return none, &Uncertain{Cause: answer.Fault}
	case answer.Fault != nil:
		return none, answer.Fault
	}
	if err := decode(answer.Payload, &result); err != nil {
		c.Close()
		return none, &Uncertain{Cause: err}
	}
	return result, nil
}

// PlanPatch plans a patch; what is held stays open as long as somebody works on it, and the
// caller's.
func (c *Client) PlanPatch(ctx context.Context, req files.PatchRequest, held []*os.File) (patching.Planned, error) {
	rights, err := dupAll(held)
	if err != nil {
		return patching.Planned{}, fmt.Errorf("%w (%w)", err, unavailable("the descriptors cannot be passed"))
	}
	plan, err := once[patching.Planned](ctx, c, message{Kind: kindPlan, frame: frame{body: req.Patch, rights: rights}}, req)
	if u, ok := err.(*Uncertain); ok { // nothing is changed by a plan
		err = fmt.Errorf("%w (%w)", u, unavailable("the runner did not answer; nothing was changed"))
	}
	return plan, err
}

// ApplyPatch applies a plan. With an *Uncertain the patch may have been applied, or be
// under way still.
func (c *Client) ApplyPatch(ctx context.Context, planID string) (patching.Outcome, error) {
	out, err := once[patching.Outcome](ctx, c, message{Kind: kindApply}, target{Plan: planID})
	return out, about(planID, err)
}

// DropPlan gives a plan up.
func (c *Client) DropPlan(ctx context.Context, planID string) error {
	_, _, err := ask[struct{}](ctx, c, kindDrop, target{Plan: planID})
	return err
}

// SettlePatch brings to an end what a patch has left. It may be repeated.
func (c *Client) SettlePatch(ctx context.Context, req files.SettleRequest, held []*os.File) (patching.Outcome, error) {
	rights, err := dupAll(held)
	if err != nil {
		return patching.Outcome{}, fmt.Errorf("%w (%w)", err, unavailable("the descriptors cannot be passed"))
	}
	return once[patching.Outcome](ctx, c, message{Kind: kindSettle, frame: frame{rights: rights}}, req)
}

// Read returns output, at most MaxChunk at once. When ctx ends, a waiting read
// answers with what is there, or with ctx's error if the runner is too slow.
func (c *Client) Read(ctx context.Context, req runner.ReadRequest) (runner.ReadResult, error) {
	result, chunk, err := ask[runner.ReadResult](ctx, c, kindRead, req)
	result.Chunk = chunk
	return result, err
}

// Status tells everything known about one process.
func (c *Client) Status(ctx context.Context, processID string) (runner.Status, error) {
	status, _, err := ask[runner.Status](ctx, c, kindStatus, target{ProcessID: processID})
	return status, err
}

// Terminate ends a process.
func (c *Client) Terminate(ctx context.Context, processID string) error {
	_, _, err := ask[struct{}](ctx, c, kindTerminate, target{ProcessID: processID})
	return err
}

// Signal sends one signal, by number, to a process. With an error it may have
// been sent all the same.
func (c *Client) Signal(ctx context.Context, processID string, signal int) error {
	_, _, err := ask[struct{}](ctx, c, kindSignal, target{ProcessID: processID, Signal: signal})
	return err
}

// Write gives a process input. With an error that is not a *Fault it may have been
// accepted all the same; the same WriteID makes it safe to repeat.
func (c *Client) Write(ctx context.Context, req runner.WriteRequest) (runner.WriteResult, error) {
	var result runner.WriteResult
	answer, _, err := c.exchange(ctx, message{Kind: kindWrite, frame: frame{body: req.Data}}, req)
	if err != nil {
		return result, err
	}
	if answer.Fault != nil {
		return result, answer.Fault
	}
	return result, decode(answer.Payload, &result)
}

// Resize changes the size of a process's terminal.
func (c *Client) Resize(ctx context.Context, processID string, rows, cols int) error {
	_, _, err := ask[struct{}](ctx, c, kindResize, target{ProcessID: processID, Rows: rows, Cols: cols})
	return err
}

// List tells the status of those of the processes that are known, in order.
func (c *Client) List(ctx context.Context, processIDs []string) ([]runner.Status, error) {
	list, _, err := ask[[]runner.Status](ctx, c, kindList, target{Processes: processIDs})
	return list, err
}

// Support tells what holds for the commands of a workspace on the runner's host.
func (c *Client) Support(ctx context.Context, workspace string) (runner.Support, error) {
	support, _, err := ask[runner.Support](ctx, c, kindSupport, target{Workspace: workspace})
	return support, err
}

// ReadFile reads a part of a file, at most MaxChunk at once.
func (c *Client) ReadFile(ctx context.Context, req files.ReadRequest) (files.ReadResult, error) {
	result, content, err := ask[files.ReadResult](ctx, c, kindFile, req)
	result.Content = content
	return result, err
}

// Find finds paths.
func (c *Client) Find(ctx context.Context, req files.FindRequest) (files.FindResult, error) {
	result, paths, err := ask[files.FindResult](ctx, c, kindFind, req)
	result.Paths = unpackPaths(paths)
	return result, err
}

// Versions looks at paths, in their order.
func (c *Client) Versions(ctx context.Context, req files.VersionsRequest) ([]files.Version, error) {
	versions, _, err := ask[[]files.Version](ctx, c, kindVersions, req)
	return versions, err
}

// Ping is answered by a runner that is alive, however busy. Give ctx a deadline.
func (c *Client) Ping(ctx context.Context) error {
	_, _, err := ask[struct{}](ctx, c, kindPing, nil)
	return err
}

// Watch pings every interval until the connection is cut. If a ping is not
// answered within deadline it calls stalled, once, and ends: the runner has been
// stopped and will not end its subtree by itself.
func (c *Client) Watch(interval, deadline time.Duration, stalled func()) {
	go func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-c.done:
				return
			case <-tick.C:
			}
			ctx, cancel := context.WithTimeout(context.Background(), deadline)
			err := c.Ping(ctx)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				stalled()
				return
			}
		}
	}()
}

// ask sends a request that its caller may repeat, whatever became of it.
func ask[T any](ctx context.Context, c *Client, k kind, payload any) (T, []byte, error) {
	var result, none T
	answer, _, err := c.exchange(ctx, message{Kind: k}, payload)
	if err != nil {
		return none, nil, err
	}
	if answer.Fault != nil {
		return none, nil, answer.Fault
	}
	if err := decode(answer.Payload, &result); err != nil {
		c.Close()
		return none, nil, fmt.Errorf("%w (%w)", err, unavailable("the runner's answer makes no sense"))
	}
	return result, answer.body, nil
}
