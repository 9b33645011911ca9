package wire_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"codespace/policy"
	"codespace/runner"
	"codespace/runner/wire"
	"codespace/sandbox"
)

func TestRequestsCrossExactly(t *testing.T) {
	code := 7
	exec := runner.ExecRequest{ProcessID: "proc_1", Workspace: "w", Digest: "d", Access: policy.AccessWrite, Argv: []string{"", "a\xff\xfe\x00b", "<é>\n", strings.Repeat("\x01", 2<<20)}}
	result := runner.ExecResult{Started: time.Unix(1, 2).UTC(), Receipt: sandbox.Receipt{Digest: "r", Layers: []string{"seccomp"}}}
	read := runner.ReadRequest{ProcessID: "proc_1", Cursor: 1<<62 + 1, MaxBytes: 5, Wait: 3 * time.Second}
	chunk := runner.ReadResult{Chunk: []byte("\x00\xff\n"), Cursor: 1<<62 + 4, EOF: true, Lost: 1, RetainedFrom: 2, State: runner.Exited}
	status := runner.Status{ProcessID: "proc_1", Workspace: "w", State: runner.Exited, Termination: runner.ByExit, ExitCode: &code, Started: time.Unix(1, 0).UTC(), Usage: runner.Usage{CPU: 5}}
	support := runner.Support{Available: true, Layers: []string{"seccomp"}, Cgroup: "v2"}

	var mu sync.Mutex
	var seen []any
	see := func(what ...any) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, what...)
	}
	h := idle()
	h.Exec = func(_ context.Context, r runner.ExecRequest, files []*os.File) (runner.ExecResult, error) {
		see(r, len(files))
		return result, nil
	}
	h.Read = func(_ context.Context, r runner.ReadRequest) (runner.ReadResult, error) {
		see(r)
		return chunk, nil
	}
	h.Status = func(_ context.Context, id string) (runner.Status, error) { see(id); return status, nil }
	h.Terminate = func(_ context.Context, id string) error { see(id); return nil }
	h.Signal = func(_ context.Context, id string, n int) error { see(id, n); return nil }
	h.Support = func(_ context.Context, w string) (runner.Support, error) { see(w); return support, nil }
	c := connect(t, h, nil)

	var got []any
	keep := func(v any, err error) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v)
	}
	ctx := t.Context()
	keep(c.Exec(ctx, exec, nil))
	keep(c.Read(ctx, read))
	keep(c.Status(ctx, "proc_s"))
	keep(nil, c.Terminate(ctx, "proc_t"))
	keep(nil, c.Signal(ctx, "proc_k", 9))
	keep(c.Support(ctx, "site"))
	keep(nil, c.Ping(ctx))
	mu.Lock()
	defer mu.Unlock()
	if want := []any{exec, 0, read, "proc_s", "proc_t", "proc_k", 9, "site"}; !reflect.DeepEqual(seen, want) {
		t.Errorf("the runner saw other requests than were sent")
	}
	if want := []any{result, chunk, status, nil, nil, support, nil}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestErrorsCross(t *testing.T) {
	fault := &runner.Fault{Code: runner.InvalidArgument, Message: "m", Next: "n", Retryable: true, Details: map[string]any{"cursor": int64(1<<62 + 1)}}
	h := idle()
	h.Read = func(context.Context, runner.ReadRequest) (runner.ReadResult, error) {
		return runner.ReadResult{}, fmt.Errorf("at /secret/path: %w", fault)
	}
	h.Status = func(context.Context, string) (runner.Status, error) {
		return runner.Status{}, errors.New("cannot open /secret/path")
	}
	h.Terminate = func(context.Context, string) error { panic("/secret/path") }
	h.Exec = func(_ context.Context, _ runner.ExecRequest, files []*os.File) (runner.ExecResult, error) {
		panic("half way")
	}
	c := connect(t, h, nil)

	_, err := c.Read(t.Context(), runner.ReadRequest{})
	var got *runner.Fault
	if !errors.As(err, &got) || got.Details["cursor"] != json.Number("4611686018427387905") {
		t.Fatalf("fault: %v", err)
	}
	if got.Details = fault.Details; !reflect.DeepEqual(got, fault) {
		t.Fatalf("fault: %+v", got)
	}
	_, plain := c.Status(t.Context(), "")
	for _, err := range []error{plain, c.Terminate(t.Context(), "")} {
		if code(err) != runner.Internal || strings.Contains(err.Error(), "secret") {
			t.Fatalf("internal: %v", err)
		}
	}
	// Nobody knows how far a panicking Exec had come.
	_, err = c.Exec(t.Context(), runner.ExecRequest{ProcessID: "proc_9"}, nil)
	var u *wire.Uncertain
	if !errors.As(err, &u) || u.ID != "proc_9" || code(u.Cause) != runner.Internal || code(err) != "" {
		t.Fatalf("panicking exec: %v", err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Fatalf("after a panic: %v", err)
	}
}

// A hundred requests are in the runner at once and are answered in any order.
func TestHundredConcurrentRequests(t *testing.T) {
	const n = 100
	var arrived sync.WaitGroup
	arrived.Add(n)
	h := idle()
	h.Read = func(_ context.Context, r runner.ReadRequest) (runner.ReadResult, error) {
		arrived.Done()
		arrived.Wait()
		return runner.ReadResult{Chunk: bytes.Repeat([]byte{byte(r.Cursor)}, rand.IntN(50_000)), Cursor: -r.Cursor}, nil
	}
	c := connect(t, h, nil)
	var all sync.WaitGroup
	for i := range int64(n) {
		all.Go(func() {
			got, err := c.Read(t.Context(), runner.ReadRequest{Cursor: i})
			if err != nil || got.Cursor != -i || len(bytes.Trim(got.Chunk, string([]byte{byte(i)}))) != 0 {
				t.Errorf("request %d: cursor %d, %v", i, got.Cursor, err)
			}
		})
	}
	all.Wait()
}

func TestChunkIsBounded(t *testing.T) {
	h := idle()
	h.Read = func(_ context.Context, r runner.ReadRequest) (runner.ReadResult, error) {
		return runner.ReadResult{Chunk: make([]byte, r.MaxBytes)}, nil
	}
	c := connect(t, h, nil)
	for asked, want := range map[int]int{10: 10, wire.MaxChunk: wire.MaxChunk, 1 << 40: wire.MaxChunk} {
		if got, err := c.Read(t.Context(), runner.ReadRequest{MaxBytes: asked}); err != nil || len(got.Chunk) != want {
			t.Errorf("asked %d: %d bytes, %v", asked, len(got.Chunk), err)
		}
	}
}

func TestTooLargeRequestIsNotSent(t *testing.T) {
	c := connect(t, idle(), nil)
	_, err := c.Exec(t.Context(), runner.ExecRequest{Argv: []string{strings.Repeat("a", 16<<20)}}, nil)
	if code(err) != runner.InvalidArgument || uncertain(err) {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestCancelOfWaitingRead(t *testing.T) {
	out := runner.NewOutput(100)
	out.Write([]byte("before"))
	waiting := make(chan struct{})
	h := idle()
	h.Read = func(ctx context.Context, r runner.ReadRequest) (runner.ReadResult, error) {
		close(waiting)
		return out.Read(ctx, r.Cursor, r.MaxBytes, r.Wait)
	}
	c := connect(t, h, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-waiting
		cancel()
	}()
	got, err := c.Read(ctx, runner.ReadRequest{Cursor: 6, MaxBytes: 10, Wait: time.Hour})
	if err != nil || got.Cursor != 6 || len(got.Chunk) != 0 || got.EOF {
		t.Fatalf("%+v, %v", got, err)
	}
}

// A runner that does not answer a cancel holds its caller for a bounded time.
func TestCancelOfStuckRequest(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	h := idle()
	h.Status = func(context.Context, string) (runner.Status, error) {
		close(entered)
		<-release
		return runner.Status{}, nil
	}
	c := connect(t, h, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	if _, err := c.Status(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(release) // the late answer is nobody's
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// An exec that is given up is uncertain, and is not cancelled in the runner.
func TestExecGivenUp(t *testing.T) {
	entered, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	h := idle()
	h.Exec = func(ctx context.Context, _ runner.ExecRequest, _ []*os.File) (runner.ExecResult, error) {
		close(entered)
		<-release
		ended <- ctx.Err()
		return runner.ExecResult{}, nil
	}
	c := connect(t, h, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	if _, err := c.Exec(ctx, runner.ExecRequest{}, nil); !uncertain(err) || errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()); err != nil { // the runner has read everything sent so far
		t.Fatal(err)
	}
	close(release)
	if err := await(t, ended); err != nil {
		t.Fatalf("the command was cancelled: %v", err)
	}
	if _, err := c.Exec(ctx, runner.ExecRequest{}, nil); uncertain(err) || !errors.Is(err, context.Canceled) {
		t.Fatalf("an exec that was not sent: %v", err)
	}
}

// The gateway frees its lease in the callback, so nothing may be seen before it.
func TestEndedComesBeforeLaterAnswers(t *testing.T) {
	var tell func(runner.Ended)
	h := idle()
	h.Subscribe = func(f func(runner.Ended)) { tell = f }
	h.Status = func(_ context.Context, id string) (runner.Status, error) {
		tell(runner.Ended{ProcessID: id, Workspace: "w"})
		return runner.Status{State: runner.Exited}, nil
	}
	last := "" // deliberately unguarded: the order is the guard
	c := connect(t, h, func(e runner.Ended) { last = e.ProcessID + " in " + e.Workspace })
	for i := range 500 {
		id := fmt.Sprint("proc_", i)
		if _, err := c.Status(t.Context(), id); err != nil || last != id+" in w" {
			t.Fatalf("%s: answered before %q, %v", id, last, err)
		}
	}
}

func TestAnswersWaitForTheCallback(t *testing.T) {
	var tell func(runner.Ended)
	entered, release := make(chan struct{}), make(chan struct{})
	h := idle()
	h.Subscribe = func(f func(runner.Ended)) { tell = f }
	h.Status = func(context.Context, string) (runner.Status, error) {
		tell(runner.Ended{})
		return runner.Status{}, nil
	}
	returned := false
	c := connect(t, h, func(runner.Ended) {
		close(entered)
		<-release
		returned = true
	})
	answered := make(chan bool)
	go func() {
		c.Status(t.Context(), "")
		answered <- returned
	}()
	<-entered
	select {
	case <-answered:
		t.Fatal("answered while the callback ran")
	default:
	}
	close(release)
	if !await(t, answered) {
		t.Fatal("answered before the callback returned")
	}
}
