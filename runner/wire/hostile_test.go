package wire_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codespace/runner"
	"codespace/runner/wire"
)

// A breach cuts the connection, and nothing of the breaching frame is done.
func TestServerCutsBreach(t *testing.T) {
	const status = `{"kind":"status","id":1,"payload":{"process_id":"p"}}`
	alter := func(header, from, to string, body ...byte) []byte {
		if !strings.Contains(header, from) {
			t.Fatalf("no %s in %s", from, header)
		}
		return packed(strings.Replace(header, from, to, 1), body...)
	}
	cases := map[string][]byte{
		"unknown kind":         alter(status, "status", "destroy"),
		"no kind":              packed(`{}`),
		"the runner's kind":    packed(`{"kind":"ended","payload":{"process_id":"p","workspace_id":"w"}}`),
		"second greeting":      packed(goodHello),
		"no JSON":              packed("nonsense"),
		"empty frame":          packed(""),
		"two values":           packed(status + "{}"),
		"unknown field":        alter(goodExec, `"id":1`, `"id":1,"root":"/"`),
		"unknown argument":     alter(goodExec, `"access"`, `"cwd":"/","access"`, goodArgv...),
		"wrong type":           alter(goodExec, `"id":1`, `"id":"1"`, goodArgv...),
		"id 0":                 alter(goodExec, `"id":1`, `"id":0`, goodArgv...),
		"negative id":          alter(goodExec, `"id":1`, `"id":-1`, goodArgv...),
		"body of a status":     append(packed(status, 'x'), packed(goodExec, goodArgv...)...),
		"body of a ping":       packed(`{"kind":"ping","id":1}`, 'x'),
		"argument cut short":   packed(goodExec, []byte("\x00\x00\x00\x05true")...),
		"argument length":      packed(goodExec, []byte("\x00\x00\x00")...),
		"huge argument":        packed(goodExec, []byte("\xff\xff\xff\xfftrue")...),
		"missing descriptors":  alter(goodExec, `"id":1`, `"id":1,"files":1`, goodArgv...),
		"too many descriptors": alter(goodExec, `"id":1`, `"id":1,"files":9`, goodArgv...),
		"attached to nothing":  alter(goodExec, `"argv":null`, `"argv":null,"attached":true`, goodArgv...),
		"huge length":          []byte("\xff\xff\xff\xff\x00\x00\x00\x00"),
		"one above the cap":    []byte("\x01\x00\x00\x01\x00\x00\x00\x00"),
		"header too long":      []byte("\x00\x00\x00\x08\x00\x00\x00\x05abcd"),
		"length below 4":       []byte("\x00\x00\x00\x03\x00\x00\x00\x00"),
	}
	for name, breach := range cases {
		t.Run(name, func(t *testing.T) {
			h := forbidden(t)
			h.Subscribe = nil
			path, served := serve(t, wire.Peer{Digest: digest}, h)
			r := greeted(t, path).send(breach)
			if answer := r.frame(); strings.HasPrefix(answer, "{") {
				t.Errorf("answered %s", answer)
			}
			if err := await(t, served); err == nil {
				t.Error("the breach was not noticed")
			}
		})
	}
}

// An id may not be used while it is being answered.
func TestServerCutsDuplicateID(t *testing.T) {
	var calls atomic.Int32
	h := idle()
	h.Status = func(ctx context.Context, _ string) (runner.Status, error) {
		calls.Add(1)
		<-ctx.Done()
		return runner.Status{}, ctx.Err()
	}
	path, served := serve(t, wire.Peer{Digest: digest}, h)
	request := packed(`{"kind":"status","id":1,"payload":{"process_id":"p"}}`)
	r := greeted(t, path).send(request).send(request)
	if err := await(t, served); err == nil || calls.Load() > 1 {
		t.Fatalf("%d calls, %v", calls.Load(), err)
	}
	r.socket.Close()
}

// A frame that stops at any byte is never carried out.
func TestServerIgnoresTruncatedFrame(t *testing.T) {
	whole := packed(goodExec, goodArgv...)
	for k := range len(whole) {
		h := forbidden(t)
		h.Subscribe = nil
		path, served := serve(t, wire.Peer{Digest: digest}, h)
		greeted(t, path).send(whole[:k]).socket.Close()
		if err := await(t, served); (err == nil) != (k == 0) {
			t.Errorf("cut at %d: %v", k, err)
		}
	}
}

// disfigured is noise, or a good exec with some bits turned.
func disfigured(r *rand.Rand) []byte {
	p := packed(goodExec, goodArgv...)
	if r.IntN(3) == 0 {
		p = make([]byte, 1+r.IntN(2000))
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		copy(p, []byte{0, byte(r.IntN(2)), byte(r.Uint32()), byte(r.Uint32()), 0, 0}[:r.IntN(7)])
	}
	for range r.IntN(4) {
		p[r.IntN(len(p))] ^= 1 << r.IntN(8)
	}
	return p
}

func TestServerSurvivesRandomFrames(t *testing.T) {
	r := rand.New(rand.NewPCG(28, 29))
	for range 500 {
		path, served := serve(t, wire.Peer{Digest: digest}, idle())
		raw := greeted(t, path)
		for range 3 {
			raw.send(disfigured(r))
		}
		raw.socket.Close()
		await(t, served)
	}
}

// A runner gone mad cuts its own connection and fails the requests in flight.
func TestClientSurvivesRandomFrames(t *testing.T) {
	answers := []string{
		`{"kind":"answer","id":1,"payload":{}}`, `{"kind":"answer","id":7,"payload":null}`, `{"kind":"answer","id":1,"payload":[]}`,
		`{"kind":"ended","payload":{"process_id":"p"}}`, `{"kind":"ended","payload":3}`, `{"kind":"exec","id":1}`,
		`{"kind":"answer","id":1,"fault":{"code":"X","message":"m","retryable":false}}`,
	}
	r := rand.New(rand.NewPCG(30, 31))
	for range 500 {
		frames := [][]byte{packed(answers[r.IntN(len(answers))]), disfigured(r)}
		path := pretend(t, func(peer raw) {
			peer.frame()
			peer.send(packed(goodHello))
			peer.frame()
			peer.send(frames[0]).send(frames[1])
		})
		c, err := wire.Dial(t.Context(), path, digest, func(runner.Ended) {})
		if err != nil {
			t.Fatal(err)
		}
		c.Status(t.Context(), "p")
		await(t, c.Done())
	}
}

// Beyond the bound a request is refused without being carried out, while pings
// and cancels are served as ever.
func TestBoundOnRequestsInFlight(t *testing.T) {
	const bound = 512
	entered := make(chan string, bound+1)
	h := idle()
	h.Status = func(ctx context.Context, id string) (runner.Status, error) {
		entered <- id
		<-ctx.Done()
		return runner.Status{ProcessID: id}, nil
	}
	h.Exec = forbidden(t).Exec
	c := connect(t, h, nil)
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	for range bound - 1 {
		go c.Status(t.Context(), "busy")
	}
	go func() {
		got, err := c.Status(ctx, "cancelled")
		if err == nil && got.ProcessID != "cancelled" {
			err = fmt.Errorf("answer of %s", got.ProcessID)
		}
		answered <- err
	}()
	for range bound {
		await(t, entered)
	}
	if _, err := c.Exec(t.Context(), runner.ExecRequest{}, nil); code(err) != runner.LimitExceeded {
		t.Errorf("exec beyond the bound: %v", err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("ping beyond the bound: %v", err)
	}
	cancel()
	if err := await(t, answered); err != nil {
		t.Errorf("cancel beyond the bound: %v", err)
	}
}

// A client that does not read stops being read: the server's memory does not
// grow with what is sent to it.
func TestSlowClientIsNotRead(t *testing.T) {
	var calls atomic.Int32
	h := idle()
	h.Read = func(context.Context, runner.ReadRequest) (runner.ReadResult, error) {
		calls.Add(1)
		return runner.ReadResult{Chunk: make([]byte, wire.MaxChunk)}, nil
	}
	path, served := serve(t, wire.Peer{Digest: digest}, h)
	r := greeted(t, path)
	n, err := 0, error(nil)
	for ; err == nil && n < 100_000; n++ {
		r.socket.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
		_, err = r.socket.Write(packed(fmt.Sprintf(`{"kind":"read","id":%d,"payload":{"process_id":"p","cursor":0,"max_bytes":1,"wait":0}}`, n+1)))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) || calls.Load() > 512 {
		t.Errorf("%d requests sent, %d carried out, %v", n, calls.Load(), err)
	}
	r.socket.Close()
	await(t, served)
}
