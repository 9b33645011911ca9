package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codespace/runner"
	"codespace/runner/wire"
)

// cutter is a proxy that cuts both of its connections once so many bytes have
// passed in one direction, and counts what passed.
type cutter struct {
	requests, answers int64 // how many bytes may pass
	passedUp          int64
	passedDown        int64
}

// run serves one connection from l to the runner at path.
func (p *cutter) run(l *net.UnixListener, path string) {
	gateway, err := l.AcceptUnix()
	if err != nil {
		return
	}
	far, err := net.Dial("unix", path)
	if err != nil {
		gateway.Close()
		return
	}
	cut := func() {
		gateway.Close()
		far.Close()
	}
	up := make(chan struct{})
	go func() {
		defer close(up)
		defer cut()
		p.passedUp, _ = io.CopyN(far, gateway, p.requests)
	}()
	p.passedDown, _ = io.CopyN(gateway, far, p.answers)
	cut()
	<-up
}

// attempt executes id once through a proxy and returns Exec's error and the
// proxy; dialled is false if not even the handshake came through.
func attempt(t *testing.T, id string, p *cutter, counter string) (dialled bool, err error) {
	t.Helper()
	h := idle()
	h.Exec = func(_ context.Context, r runner.ExecRequest, _ []*os.File) (runner.ExecResult, error) {
		f, err := os.OpenFile(counter, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return runner.ExecResult{}, err
		}
		defer f.Close()
		_, err = f.WriteString(r.ProcessID + "\n")
		return runner.ExecResult{}, err
	}
	path, served := serve(t, wire.Peer{Digest: digest}, h)
	l, front := listen(t)
	proxied := make(chan struct{})
	go func() {
		defer close(proxied)
		p.run(l, path)
	}()
	c, err := wire.Dial(t.Context(), front, digest, nil)
	if err == nil {
		dialled = true
		_, err = c.Exec(t.Context(), runner.ExecRequest{ProcessID: id, Workspace: "w", Argv: []string{"true", id}}, nil)
		c.Close()
		<-c.Done()
	}
	await(t, served)
	await(t, proxied)
	return dialled, err
}

// What a cut at each single byte of the conversation does to one exec: it is
// executed at most once, and whatever Exec says of it is true.
func TestExecCutAtEveryByte(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "executions")
	whole := &cutter{requests: math.MaxInt64, answers: math.MaxInt64}
	if _, err := attempt(t, "proc_whole", whole, counter); err != nil {
		t.Fatal(err)
	}
	type outcome struct {
		id      string
		dialled bool
		err     error
	}
	var outcomes []outcome
	for k := range whole.passedUp + 1 {
		id := fmt.Sprintf("proc_u%04d", k)
		dialled, err := attempt(t, id, &cutter{requests: k, answers: math.MaxInt64}, counter)
		outcomes = append(outcomes, outcome{id, dialled, err})
	}
	for k := range whole.passedDown + 1 {
		id := fmt.Sprintf("proc_d%04d", k)
		dialled, err := attempt(t, id, &cutter{requests: math.MaxInt64, answers: k}, counter)
		outcomes = append(outcomes, outcome{id, dialled, err})
	}
	log, err := os.ReadFile(counter)
	if err != nil {
		t.Fatal(err)
	}
	tally, right := map[string]int{}, 0
	for _, o := range outcomes {
		n := strings.Count(string(log), o.id+"\n")
		verdict := ""
		switch {
		case !o.dialled && code(o.err) == runner.RunnerUnavailable:
			verdict = "not greeted"
		case o.err == nil:
			verdict = "confirmed"
		case uncertain(o.err):
			verdict = "uncertain"
		case code(o.err) == runner.RunnerUnavailable:
			verdict = "not sent"
		}
		least, most := 0, 0
		switch verdict {
		case "confirmed":
			least, most = 1, 1
		case "uncertain":
			most = 1
		}
		if verdict == "" || n < least || n > most {
			t.Errorf("%s: executed %d times, said %q, %v", o.id, n, verdict, o.err)
			continue
		}
		right++
		tally[verdict]++
		if verdict == "uncertain" && n == 1 {
			tally["uncertain and executed"]++
		}
	}
	t.Logf("cut at every byte of %d and %d: %d of %d right, %v", whole.passedUp, whole.passedDown, right, len(outcomes), tally)
	if tally["uncertain and executed"] == 0 || tally["uncertain"] == tally["uncertain and executed"] {
		t.Error("the cuts did not reach both sides of the execution")
	}
}

// A connection that is known to be down takes no request.
func TestRequestsAfterTheCut(t *testing.T) {
	c := connect(t, idle(), nil)
	c.Close()
	<-c.Done()
	_, err := c.Exec(t.Context(), runner.ExecRequest{}, nil)
	var fault *runner.Fault
	if !errors.As(err, &fault) || fault.Code != runner.RunnerUnavailable || !fault.Retryable || uncertain(err) {
		t.Fatalf("exec: %v", err)
	}
	if _, err := c.Read(t.Context(), runner.ReadRequest{}); code(err) != runner.RunnerUnavailable {
		t.Fatalf("read: %v", err)
	}
	if c.Err() == nil {
		t.Fatal("no reason is given for the cut")
	}
}

// The runner dies with k bytes of a large exec in its hands, the gateway being
// blocked in the middle of it.
func TestExecCutInTheMiddleOfAWrite(t *testing.T) {
	for _, k := range []int64{1, 8, 9, 300_000} {
		path := pretend(t, func(r raw) {
			r.frame()
			r.send(packed(goodHello))
			io.CopyN(io.Discard, r.socket, k)
		})
		c, err := wire.Dial(t.Context(), path, digest, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Exec(t.Context(), runner.ExecRequest{Argv: []string{strings.Repeat("a", 4<<20)}}, nil)
		if !uncertain(err) {
			t.Errorf("cut at %d: %v", k, err)
		}
		<-c.Done()
	}
}

// Requests in flight fail when the connection is cut, and their contexts end.
func TestCutEndsRequestsInFlight(t *testing.T) {
	entered, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	h := idle()
	h.Read = func(ctx context.Context, _ runner.ReadRequest) (runner.ReadResult, error) {
		entered <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return runner.ReadResult{}, ctx.Err()
	}
	h.Exec = func(ctx context.Context, _ runner.ExecRequest, _ []*os.File) (runner.ExecResult, error) {
		_, err := h.Read(ctx, runner.ReadRequest{})
		return runner.ExecResult{}, err
	}
	c := connect(t, h, nil)
	failed := make(chan error, 2)
	go func() {
		_, err := c.Read(t.Context(), runner.ReadRequest{})
		if code(err) != runner.RunnerUnavailable {
			err = fmt.Errorf("read: %w", err)
			t.Error(err)
		}
		failed <- err
	}()
	go func() {
		_, err := c.Exec(t.Context(), runner.ExecRequest{}, nil)
		if !uncertain(err) {
			t.Errorf("exec: %v", err)
		}
		failed <- err
	}()
	await(t, entered)
	await(t, entered)
	c.Close()
	for range 2 {
		await(t, failed)
		await(t, ended)
	}
}
