package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"codespace/sandbox/message"

	"golang.org/x/sys/unix"
)

// ErrHelperLost says that the helper is gone, and every sandbox with it.
var ErrHelperLost = errors.New("sandbox helper is gone")

// Helper is the runner's end of the preparation protocol.
type Helper struct {
	ch   *message.Channel
	done chan struct{}

	sending sync.Mutex // one message at a time

	mu        sync.Mutex // guards what follows
	next      uint64
	waiting   map[uint64]chan answer
	factories map[string]*os.File // pidfds, by sandbox
	closed    bool
}

// NewHelper takes over the runner's end of the pair.
func NewHelper(f *os.File) (*Helper, error) {
	ch, err := message.New(f)
	if err != nil {
		return nil, err
	}
	h := &Helper{ch: ch, done: make(chan struct{}), waiting: map[uint64]chan answer{}, factories: map[string]*os.File{}}
	go h.receive()
	return h, nil
}

// Done is closed when the helper is gone.
func (h *Helper) Done() <-chan struct{} { return h.done }

// Close cuts the protocol; the helper ends and takes its sandboxes with it.
func (h *Helper) Close() error { return h.ch.Close() }

// Prepare builds a sandbox. A *Failure says which step could not be done.
func (h *Helper) Prepare(ctx context.Context, p Plan) (Receipt, error) {
	if err := p.Check(); err != nil {
		return Receipt{}, err
	}
	a, err := h.call(ctx, request{Verb: verbPrepare, Plan: &p})
	if err != nil {
		message.CloseAll(a.files)
		return Receipt{}, err
	}
	return a.reply.Receipt, h.own(a)
}

// own keeps the factory of a sandbox for as long as the sandbox stands.
func (h *Helper) own(a answer) error {
	if len(a.files) != 1 {
		message.CloseAll(a.files)
		return fmt.Errorf("cannot use sandbox: %d descriptors came with it, want 1", len(a.files))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		end(a.files[0])
		return ErrHelperLost
	}
	h.factories[a.reply.Sandbox] = a.files[0]
	return nil
}

// end kills what a pidfd names and closes it.
func end(pidfd *os.File) {
	unix.PidfdSendSignal(int(pidfd.Fd()), unix.SIGKILL, nil, 0)
	pidfd.Close()
}

// Cell makes one cell in a prepared sandbox. The caller closes it.
func (h *Helper) Cell(ctx context.Context, sandbox string, w Wish) (*Cell, error) {
	a, err := h.call(ctx, request{Verb: verbCell, Sandbox: sandbox, Wish: w})
	if err != nil {
		message.CloseAll(a.files)
		return nil, err
	}
	return newCell(a, w)
}

// PatchFilter is the system-call filter of a patch helper: an array of struct
// sock_filter.
func (h *Helper) PatchFilter(ctx context.Context) ([]byte, error) {
	a, err := h.call(ctx, request{Verb: verbFilter})
	message.CloseAll(a.files)
	return a.reply.Filter, err
}

// Release puts a sandbox away with everything that still runs in it. To release
// one that does not exist succeeds: a helper that answers that is not hung.
func (h *Helper) Release(ctx context.Context, sandbox string) error {
	a, err := h.call(ctx, request{Verb: verbRelease, Sandbox: sandbox})
	message.CloseAll(a.files)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.factories[sandbox]; f != nil {
		f.Close()
		delete(h.factories, sandbox)
	}
	return nil
}

func (h *Helper) call(ctx context.Context, r request) (answer, error) {
	wait := make(chan answer, 1)
	h.mu.Lock()
	h.next++
	r.ID, r.Version = h.next, protocolVersion
	if h.closed {
		h.mu.Unlock()
		return answer{}, ErrHelperLost
	}
	h.waiting[r.ID] = wait
	h.mu.Unlock()
	err := h.send(r)
	if err != nil {
		h.abandon(r.ID, wait)
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed) {
		return answer{}, ErrHelperLost
	}
	if err != nil {
		return answer{}, fmt.Errorf("cannot ask the sandbox helper to %s: %w", r.Verb, err)
	}
	select {
	case a := <-wait:
		if a.reply.Failed != nil {
			return a, a.reply.Failed
		}
		return a, nil
	case <-h.done:
		h.abandon(r.ID, wait)
		return answer{}, ErrHelperLost
	case <-ctx.Done():
		h.abandon(r.ID, wait)
		return answer{}, context.Cause(ctx)
	}
}

// send may wait for a helper that does not read, for a bounded time: no other lock
// is held meanwhile.
func (h *Helper) send(r request) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(b) > message.MaxBytes {
		return fmt.Errorf("request of %d bytes, at most %d", len(b), message.MaxBytes)
	}
	h.sending.Lock()
	defer h.sending.Unlock()
	return h.ch.Send(b)
}

// abandon makes sure that an answer nobody waits for leaves no descriptor open.
func (h *Helper) abandon(id uint64, wait <-chan answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiting, id)
	select {
	case a := <-wait:
		go h.discard(a)
	default:
	}
}

// discard ends a cell that came too late and frees its cgroup, and puts away a
// sandbox that did.
func (h *Helper) discard(a answer) {
	if a.reply.Sandbox != "" {
		message.CloseAll(a.files)
		h.call(context.Background(), request{Verb: verbRelease, Sandbox: a.reply.Sandbox})
		return
	}
	if len(a.files) < 2 {
		message.CloseAll(a.files)
		return
	}
	c, err := newCell(a, Wish{Terminal: len(a.files) == 3})
	if err != nil {
		return
	}
	c.Close()
	if c.Terminal != nil {
		c.Terminal.Close()
	}
}

func (h *Helper) receive() {
	defer func() {
		close(h.done) // first: what is about to end is not used any more
		h.mu.Lock()
		h.closed = true
		for _, f := range h.factories {
			end(f) // not all of them notice that the helper is gone
		}
		clear(h.factories)
		h.mu.Unlock()
		h.ch.Close()
	}()
	buf := make([]byte, message.MaxBytes)
	for {
		b, files, err := h.ch.Receive(buf)
		if err != nil {
			return
		}
		var a answer
		a.files = files
		if err := json.Unmarshal(b, &a.reply); err != nil {
			message.CloseAll(files)
			return
		}
		h.deliver(a)
	}
}

func (h *Helper) deliver(a answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wait, ok := h.waiting[a.reply.ID]
	if !ok {
		go h.discard(a)
		return
	}
	delete(h.waiting, a.reply.ID)
	wait <- a // buffered: never blocks
}
