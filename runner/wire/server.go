package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"codespace/runner"
	"codespace/runner/files"
	"codespace/runner/patching"
)

const (
	// maxCalls is how many requests are worked on at once: twice what a gateway takes
	// of one client, who may ask again as soon as it has an answer.
	maxCalls = 512
	maxHeld  = 64 << 20 // bytes of them
)

// Handler is what answers requests: a runner's methods. Each call has its own
// goroutine and a context that ends with a cancel or with the connection. A
// *Fault crosses as it is; any other error is logged and crosses as Internal.
type Handler struct {
	Exec      func(context.Context, runner.ExecRequest, []*os.File) (runner.ExecResult, error) // owns the files, also when it fails
	Read      func(context.Context, runner.ReadRequest) (runner.ReadResult, error)
	Status    func(ctx context.Context, processID string) (runner.Status, error)
	Terminate func(ctx context.Context, processID string) error
	Write     func(runner.WriteRequest) (runner.WriteResult, error)
	Resize    func(ctx context.Context, processID string, rows, cols int) error
	List      func(ctx context.Context, processIDs []string) ([]runner.Status, error)
	Signal    func(ctx context.Context, processID string, signal int) error
	Support   func(ctx context.Context, workspace string) (runner.Support, error)
	ReadFile  func(context.Context, files.ReadRequest) (files.ReadResult, error)
	Find      func(context.Context, files.FindRequest) (files.FindResult, error)
	Versions  func(context.Context, files.VersionsRequest) ([]files.Version, error)

	PlanPatch   func(context.Context, files.PatchRequest, []*os.File) (patching.Planned, error) // owns the files
	ApplyPatch  func(ctx context.Context, planID string) (patching.Outcome, error)
	DropPlan    func(ctx context.Context, planID string) error
	SettlePatch func(context.Context, files.SettleRequest, []*os.File) (patching.Outcome, error) // likewise

	// Subscribe is called once, before the first request, with the function that
	// tells the gateway of an end. Its return means that the gateway learns of it
	// before any answer that is given later, or that the connection is cut. It may
	// block for as long as the gateway does not read.
	Subscribe func(tell func(runner.Ended))
}

// Peer says whom Serve welcomes: the process PID (0: any of our uid or root)
// with the same registry.
type Peer struct {
	PID    int
	Digest string
}

// Serve accepts one connection on l, closes l, and answers requests until the
// connection is cut, ctx ends or the protocol is breached. Strangers are refused
// and do not count; a peer that does not come or greet in 30 s, or that greets
// wrongly, is an error. A clean cut is nil. Serve does not wait for calls that are
// being handled: their contexts have ended, and their answers go nowhere.
func Serve(ctx context.Context, l *net.UnixListener, peer Peer, h Handler) error {
	c, err := admit(ctx, l, peer)
	l.Close()
	if err != nil {
		return err
	}
	defer c.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, c.close)()

	s := &server{conn: c, handler: h, calls: make(map[uint64]context.CancelFunc)}
	if h.Subscribe != nil {
		h.Subscribe(s.tell)
	}
	for {
		m, err := c.next()
		if err == nil {
			err = s.take(ctx, m)
		}
		if err == io.EOF || ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("cannot serve the gateway: %w", err)
		}
	}
}

// admit returns the first connection of the expected peer, greeted.
func admit(ctx context.Context, l *net.UnixListener, peer Peer) (*conn, error) {
	l.SetDeadline(time.Now().Add(helloTime))
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		socket, err := l.AcceptUnix()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("cannot accept the gateway: %w", err)
		}
		c := newConn(socket)
		if err := checkPeer(socket, peer.PID); err != nil {
			c.refuse(err)
			continue
		}
		socket.SetDeadline(time.Now().Add(helloTime))
		stop := context.AfterFunc(ctx, c.close)
		if err := c.welcome(peer.Digest); err != nil {
			stop()
			return nil, err
		}
		stop()
		socket.SetDeadline(time.Time{})
		return c, nil
	}
}

type server struct {
	conn    *conn
	handler Handler

	mu    sync.Mutex // guards what follows
	calls map[uint64]context.CancelFunc
	held  int
}

// tell writes an event before anything that is sent after its return.
func (s *server) tell(e runner.Ended) {
	f, err := message{Kind: kindEnded}.seal(e)
	s.send(f, err)
}

// send cuts the connection if the frame could not be made or not be sent.
func (s *server) send(f frame, err error) {
	if err == nil {
		_, err = s.conn.send(f)
	}
	if err != nil {
		s.conn.close()
	}
}

// take begins to answer one message. An error is a breach.
func (s *server) take(ctx context.Context, m message) error {
	bare := len(m.files) == 0 && len(m.body) == 0
	switch {
	case m.Kind == kindCancel && bare:
		s.cancel(m.ID)
		return nil
	case m.Kind == kindPing && bare:
		s.answer(message{ID: m.ID}, nil)
		return nil
	case m.dropped:
		s.answer(message{ID: m.ID, Fault: limit("the runner has no free descriptor")}, nil)
		return nil
	}
	work, err := bind(s.handler, m)
	if err != nil {
		closeAll(m.files)
		return err
	}
	size := len(m.header) + len(m.body)
	ctx, fault, err := s.begin(ctx, m.ID, size)
	if err != nil || fault != nil {
		closeAll(m.files)
	}
	switch {
	case err != nil:
		return err
	case fault != nil:
		s.answer(message{ID: m.ID, Fault: fault}, nil)
		return nil
	}
	go func() {
		defer s.end(m.ID, size)
		reply, result := perform(ctx, m, work)
		s.answer(reply, result)
	}()
	return nil
}

func (s *server) begin(ctx context.Context, id uint64, size int) (context.Context, *runner.Fault, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, busy := s.calls[id]; busy || id == 0 {
		return nil, nil, fmt.Errorf("cannot take request %d: the id is in use", id)
	}
	if len(s.calls) >= maxCalls || s.held+size > maxHeld {
		return nil, limit(fmt.Sprintf("the runner already works on %d requests", len(s.calls))), nil
	}
	ctx, cancel := context.WithCancel(ctx)
	s.calls[id] = cancel
	s.held += size
	return ctx, nil, nil
}

func (s *server) end(id uint64, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[id]()
	delete(s.calls, id)
	s.held -= size
}

func (s *server) cancel(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel, ok := s.calls[id]; ok {
		cancel()
	}
}

// answer sends one answer, blocking while the gateway does not read.
func (s *server) answer(m message, result any) {
	m.Kind = kindAnswer
	f, err := m.seal(result)
	if err != nil {
		slog.Error("runner cannot answer", "err", err)
		f, err = message{Kind: kindAnswer, ID: m.ID, Fault: internal(), Uncertain: true}.seal(nil)
	}
	s.send(f, err)
}

// perform does the work. A panic is a fault of which nobody knows how far the
// work had come.
func perform(ctx context.Context, m message, work work) (reply message, result any) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("runner panicked", "request", m.Kind, "panic", p, "stack", string(debug.Stack()))
			closeAll(m.files)
			reply, result = message{ID: m.ID, Fault: internal(), Uncertain: true}, nil
		}
	}()
	result, chunk, err := work(ctx)
	if err != nil {
		return message{ID: m.ID, Fault: faultOf(ctx, m.Kind, err)}, nil
	}
	return message{ID: m.ID, frame: frame{body: chunk}}, result
}

// faultOf keeps for the operator what must not reach a client.
func faultOf(ctx context.Context, k kind, err error) *runner.Fault {
	var fault *runner.Fault
	if !errors.As(err, &fault) {
		fault = internal()
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			fault = unavailable("the request was cancelled")
		}
	}
	if err != error(fault) {
		slog.Warn("runner refused", "request", k, "err", err)
	}
	return fault
}

func limit(message string) *runner.Fault {
	return &runner.Fault{
		Code:      runner.LimitExceeded,
		Message:   message,
		Next:      "try again once some requests are answered",
		Retryable: true,
	}
}

func internal() *runner.Fault {
	return &runner.Fault{
		Code:    runner.Internal,
		Message: "the runner failed inside",
		Next:    "ask the operator to look at the runner's log",
	}
}
