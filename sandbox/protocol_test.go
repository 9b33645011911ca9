package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"codespace/sandbox"
	"codespace/sandbox/message"

	"golang.org/x/sys/unix"
)

// Plans and receipts cross with every field.
func TestPrepareCrossesWhole(t *testing.T) {
	b, asked := forbidden(t), make(chan sandbox.Plan, 1)
	want := sandbox.Receipt{Digest: "sha256:11", Layers: []string{"view: \u00e9 <&>", "two"}}
	factory := start(t)
	b.Prepare = func(p sandbox.Plan) (sandbox.Receipt, *os.File, error) {
		asked <- p
		return want, duplicate(t, factory.pidfd), nil
	}
	h, _ := connect(t, b)
	got, err := h.Prepare(t.Context(), goodPlan())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if plan := await(t, asked); !reflect.DeepEqual(plan, goodPlan()) {
		t.Errorf("%+v arrived", plan)
	}
	for v := range reflect.ValueOf(goodPlan()).NumField() {
		if f := reflect.ValueOf(goodPlan()).Field(v); f.IsZero() {
			t.Errorf("not shown: field %s is not set", reflect.TypeOf(goodPlan()).Field(v).Name)
		}
	}
}

// Answers find their callers in whatever order they come.
func TestAnswersOutOfOrder(t *testing.T) {
	const calls = 50
	b := forbidden(t)
	var arrived sync.WaitGroup
	arrived.Add(calls)
	turn := make([]chan struct{}, calls+1)
	for i := range turn {
		turn[i] = make(chan struct{})
	}
	b.Release = func(id string) error { // the last to come is answered first
		var n int
		fmt.Sscan(id, &n)
		arrived.Done()
		<-turn[n+1]
		defer close(turn[n])
		return errors.New("seen " + id)
	}
	h, _ := connect(t, b)
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			if err := h.Release(t.Context(), fmt.Sprint(i)); err == nil || !strings.HasSuffix(err.Error(), fmt.Sprint("seen ", i)) {
				t.Errorf("%d was answered with %v", i, err)
			}
		})
	}
	arrived.Wait()
	close(turn[calls])
	all.Wait()
}

// A helper that is gone is lost for every call that waits, for every later one,
// and for one that finds out by asking.
func TestHelperLostForEveryCall(t *testing.T) {
	const calls = 20
	h, p := pretend(t)
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if _, err := h.Cell(t.Context(), "a", sandbox.Wish{Writable: true}); err != sandbox.ErrHelperLost {
				t.Errorf("a waiting call got %v", err)
			}
		})
	}
	for range calls {
		p.request()
	}
	p.Close()
	all.Wait()
	await(t, h.Done())
	if err := h.Release(t.Context(), "a"); err != sandbox.ErrHelperLost {
		t.Errorf("a later call got %v", err)
	}
	for range 200 {
		h, p := pretend(t)
		p.Close()
		if err := h.Release(t.Context(), "a"); !errors.Is(err, sandbox.ErrHelperLost) {
			t.Fatalf("the call that found out got %v", err)
		}
	}
}

// A factory that does not notice its helper's end, as one that is stopped, is killed;
// one whose sandbox was released is left to the helper.
func TestFactoryOfLostHelperIsKilled(t *testing.T) {
	b := forbidden(t)
	made := []child{start(t), start(t)}
	next := 0
	b.Prepare = func(sandbox.Plan) (sandbox.Receipt, *os.File, error) {
		next++
		return sandbox.Receipt{}, duplicate(t, made[next-1].pidfd), nil
	}
	b.Release = func(string) error { return nil }
	h, _ := connect(t, b)
	for i, c := range made {
		if err := unix.PidfdSendSignal(int(c.pidfd.Fd()), unix.SIGSTOP, nil, 0); err != nil {
			t.Fatal(err)
		}
		p := goodPlan()
		p.ID = fmt.Sprint("site-", i)
		if _, err := h.Prepare(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Release(t.Context(), "site-0"); err != nil {
		t.Fatal(err)
	}
	h.Close()
	await(t, h.Done())
	await(t, made[1].gone)
	select {
	case <-made[0].gone:
		t.Error("the factory of a released sandbox was killed")
	default:
	}
	unix.PidfdSendSignal(int(made[0].pidfd.Fd()), unix.SIGCONT, nil, 0)
}

// A sandbox that is ready when nobody waits for it any more is put away.
func TestLateSandboxIsReleased(t *testing.T) {
	b := forbidden(t)
	factory, asked, ready, released := start(t), make(chan string), make(chan error), make(chan string)
	b.Prepare = func(p sandbox.Plan) (sandbox.Receipt, *os.File, error) {
		asked <- p.ID
		return sandbox.Receipt{}, duplicate(t, factory.pidfd), <-ready
	}
	b.Release = func(id string) error { released <- id; return nil }
	h, _ := connect(t, b)
	ctx, cancel := context.WithCancelCause(t.Context())
	left, why := make(chan error), errors.New("the client left")
	go func() {
		_, err := h.Prepare(ctx, goodPlan())
		left <- err
	}()
	id := await(t, asked)
	cancel(why)
	if err := await(t, left); err != why {
		t.Fatalf("the call ended with %v", err)
	}
	ready <- nil
	if got := await(t, released); got != id {
		t.Errorf("%q was released, want %q", got, id)
	}
}

// A closed client ends its helper.
func TestCloseEndsTheService(t *testing.T) {
	h, served := connect(t, forbidden(t))
	h.Close()
	if err := await(t, served); !errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
	await(t, h.Done())
}

// An answer that nobody waits for any more leaves no descriptor open.
func TestLateAnswerIsClosed(t *testing.T) {
	h, p := pretend(t)
	round := func() {
		ctx, cancel := context.WithCancelCause(t.Context())
		left := make(chan error)
		go func() {
			_, err := h.Cell(ctx, "a", sandbox.Wish{Writable: true})
			left <- err
		}()
		late := p.request().ID
		why := errors.New("the client left")
		cancel(why)
		if err := await(t, left); err != why {
			t.Fatalf("the call ended with %v", err)
		}
		p.answer(late, 2)
		go func() { left <- h.Release(t.Context(), "a") }()
		p.answer(p.request().ID, 0) // behind it, the late answer has been received
		if err := await(t, left); err != nil {
			t.Fatal(err)
		}
	}
	round()
	withoutCollector(t)
	before := descriptors(t)
	for range 20 {
		round()
	}
	settles(t, before)
}

// An answer, the caller's leaving and the helper's end may fall together in any
// way; whoever wins, a cell that is not returned leaves no descriptor open.
func TestAnswerRacesTheEnd(t *testing.T) {
	c := start(t)
	withoutCollector(t)
	round := func(i int) {
		h, p := pretend(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		terminal := i%3 == 0
		all.Go(func() {
			cell, err := h.Cell(ctx, "a", sandbox.Wish{Terminal: terminal})
			if err == nil {
				cell.Close()
			}
			if err == nil && terminal {
				cell.Terminal.Close() // the caller's
			}
		})
		id := p.request().ID
		if i%2 == 0 {
			all.Go(cancel)
		}
		ours, theirs, err := message.Pair()
		if err != nil {
			t.Fatal(err)
		}
		files := []*os.File{theirs, c.pidfd}
		if terminal {
			files = append(files, ours) // whatever it is
		}
		p.Send(fmt.Appendf(nil, `{"id":%d}`, id), files...)
		p.Close()
		all.Wait()
		await(t, h.Done())
		ours.Close()
		theirs.Close()
	}
	c.cmd.Process.Kill() // a cell that is returned is killed by Close
	<-c.gone
	round(0)
	before := descriptors(t)
	for i := range 500 {
		round(i)
	}
	settles(t, before)
}

// A failure crosses as it is; another error becomes one of its verb.
func TestFailureCrossesIntact(t *testing.T) {
	whole := &sandbox.Failure{Step: "id-mapped mount", Index: 7, Errno: int(syscall.EINVAL), Reason: "file system of type 0x794c7630", Launch: true}
	plain := fmt.Errorf("cannot do it: %w", syscall.ENOSPC)
	cases := []struct {
		sent error
		want sandbox.Failure
	}{
		{whole, *whole},
		{fmt.Errorf("while building: %w", whole), *whole},
		{plain, sandbox.Failure{Step: "cell", Errno: int(syscall.ENOSPC), Reason: plain.Error()}},
		{errors.New("no reason"), sandbox.Failure{Step: "cell", Reason: "no reason"}},
	}
	for _, c := range cases {
		b := forbidden(t)
		b.Cell = func(string, sandbox.Wish) (sandbox.Made, error) { return sandbox.Made{}, c.sent }
		h, _ := connect(t, b)
		_, err := h.Cell(t.Context(), "a", sandbox.Wish{})
		var got *sandbox.Failure
		if !errors.As(err, &got) || *got != c.want {
			t.Errorf("%v arrived as %#v", c.sent, err)
		}
	}
}

// A plan that is not closed is refused on both sides of the protocol.
func TestBothSidesCheckThePlan(t *testing.T) {
	bad := goodPlan()
	bad.Identity.HostUID = 0
	h, _ := connect(t, forbidden(t))
	if _, err := h.Prepare(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "host id 0") {
		t.Errorf("the runner's side: %v", err)
	}
	const text = `{"version":3,"id":9,"verb":"prepare","plan":{"id":"a","root":{"path":"/srv"}}}`
	if answer := ask(t, forbidden(t), text); !strings.Contains(answer, `"id":9`) || !strings.Contains(answer, `"failed":{"step":"prepare"`) {
		t.Errorf("the helper's side: %s", answer)
	}
}

// ask sends one raw request and returns the answer.
func ask(t *testing.T, b sandbox.Builder, request string) string {
	t.Helper()
	ours, _ := serve(t, b)
	ch, err := message.New(ours)
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	if err := ch.Send([]byte(request)); err != nil {
		t.Fatal(err)
	}
	answer, files, err := ch.Receive(make([]byte, message.MaxBytes))
	if err != nil || len(files) != 0 {
		t.Errorf("%s: answered %s, %v", request, answer, err)
	}
	message.CloseAll(files)
	return string(answer)
}

// A request that is too long is refused before it is sent, and only it is.
func TestRequestTooLong(t *testing.T) {
	b := forbidden(t)
	var released atomic.Int32
	b.Release = func(string) error { released.Add(1); return nil }
	h, _ := connect(t, b)
	long := goodPlan()
	long.Mounts = nil
	for i := range 100 {
		p := fmt.Sprintf("/opt/%d/%s", i, strings.Repeat("d", 1000))
		long.Mounts = append(long.Mounts, sandbox.Bind{Source: p, Target: p})
	}
	if _, err := h.Prepare(t.Context(), long); err == nil || !strings.Contains(err.Error(), "at most 65536") {
		t.Errorf("a plan of 200 KB: %v", err)
	}
	if err := h.Release(t.Context(), "a"); err != nil || released.Load() != 1 {
		t.Errorf("the next request: %v", err)
	}
}
