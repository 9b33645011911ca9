package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"codespace/runner"
)

// cancelTime bounds the wait for the answer to a request that was cancelled.
const cancelTime = 3 * time.Second

// Client is the gateway's end. Its methods may be called from any goroutine.
type Client struct {
	conn    *conn
	pid     int // the runner's, as it says
	onEnded func(runner.Ended)
	out     chan *delivery // unbuffered: what is taken is the writer's
	done    chan struct{}
	cause   error // why the connection ended; set before done is closed

	mu      sync.Mutex // guards what follows
	last    uint64
	waiting map[uint64]chan message // given-up requests included, until they are answered
}

// delivery is a request on its way. begun tells, once, whether any byte of it
// may have reached the runner.
type delivery struct {
	frame frame
	begun chan bool
}

// Dial connects to the runner at path and greets it. onEnded, which may be nil,
// is called for each process that ended, one call at a time, before any later
// answer is handed to its caller and possibly before Exec has returned; it must
// not wait for an answer. An error wraps a RunnerUnavailable *Fault that is fit
// for clients; its own text, with the path, is for the operator.
func Dial(ctx context.Context, path, digest string, onEnded func(runner.Ended)) (*Client, error) {
	var d net.Dialer
	socket, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot dial runner: %w (%w)", err, unavailable("the runner does not listen"))
	}
	c := &Client{
		conn:    newConn(socket.(*net.UnixConn)),
		onEnded: onEnded,
		out:     make(chan *delivery),
		done:    make(chan struct{}),
		waiting: make(map[uint64]chan message),
	}
	socket.SetDeadline(time.Now().Add(helloTime))
	stop := context.AfterFunc(ctx, c.conn.close)
	c.pid, err = c.conn.greet(digest)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		c.conn.close()
		fault := unavailable("the runner did not answer the greeting")
		fault.Retryable = false
		return nil, fmt.Errorf("cannot greet runner: %w (%w)", err, fault)
	}
	socket.SetDeadline(time.Time{})
	go c.write()
	go c.read()
	return c, nil
}

// Close cuts the connection, which ends the runner's subtree. It does not wait:
// Done tells when the last callback has returned.
func (c *Client) Close() error {
	c.conn.close()
	return nil
}

// Done is closed once the connection is cut and no callback runs any more.
func (c *Client) Done() <-chan struct{} { return c.done }

// Lost reports whether the connection is gone.
func (c *Client) Lost() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Err says why the connection was cut. It is for the operator, and nil before
// Done.
func (c *Client) Err() error {
	select {
	case <-c.done:
		return c.cause
	default:
		return nil
	}
}

func (c *Client) write() {
	for {
		select {
		case d := <-c.out:
			begun, err := c.conn.send(d.frame)
			closeRights(d.frame.rights)
			d.begun <- begun
			if err != nil {
				c.conn.close()
			}
		case <-c.done:
			return
		}
	}
}

func (c *Client) read() {
	defer close(c.done)
	defer c.conn.close()
	for {
		m, err := c.conn.next()
		if err == nil {
			err = c.deliver(m)
		}
		if err != nil {
			c.cause = err
			return
		}
	}
}

// deliver hands one message over. An error is a breach.
func (c *Client) deliver(m message) error {
	if len(m.files) > 0 {
		closeAll(m.files)
		return errors.New("cannot accept descriptors from the runner")
	}
	switch m.Kind {
	case kindEnded:
		var e runner.Ended
		if err := decode(m.Payload, &e); err != nil {
			return err
		}
		if c.onEnded != nil {
			c.onEnded(e)
		}
		return nil
	case kindAnswer:
		c.mu.Lock()
		answer, ok := c.waiting[m.ID]
		delete(c.waiting, m.ID)
		c.mu.Unlock()
		if !ok {
			return fmt.Errorf("cannot place answer %d: nobody asked", m.ID)
		}
		answer <- m // never blocks: it has room for the only answer
		return nil
	}
	return fmt.Errorf("cannot accept %q from the runner", m.Kind)
}

// exchange sends one request and waits for its answer. With an error, sent says
// whether any byte of the request may have reached the runner. The rights are
// closed in every case.
func (c *Client) exchange(ctx context.Context, m message, payload any) (answer message, sent bool, err error) {
	id, answers := c.register()
	m.ID = id
	f, err := m.seal(payload)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		c.forget(id, m.rights)
		return message{}, false, err
	}
	d := &delivery{frame: f, begun: make(chan bool, 1)}
	select {
	case c.out <- d:
	case <-ctx.Done():
		c.forget(id, m.rights)
		return message{}, false, ctx.Err()
	case <-c.done:
		c.forget(id, m.rights)
		return message{}, false, unavailable("the connection to the runner is cut")
	}
	select {
	case answer = <-answers:
		return answer, true, nil
	case <-ctx.Done():
		return c.giveUp(m, answers, ctx.Err())
	case <-c.done:
		return c.lost(answers, d.begun)
	}
}

// giveUp is for a caller that waits no longer. A command is never cancelled, and
// a ping has nothing to cancel; for the others the runner is asked to answer with
// what it has.
func (c *Client) giveUp(m message, answers <-chan message, cause error) (message, bool, error) {
	if m.Kind == kindExec || m.Kind == kindPing {
		return message{}, true, cause
	}
	f, err := message{Kind: kindCancel, ID: m.ID}.seal(nil)
	if err != nil {
		return message{}, true, err
	}
	timer := time.NewTimer(cancelTime)
	defer timer.Stop()
	out := c.out
	for {
		select {
		case out <- &delivery{frame: f, begun: make(chan bool, 1)}:
			out = nil
		case answer := <-answers:
			return answer, true, nil
		case <-timer.C:
			return message{}, true, cause
		case <-c.done:
			return c.lost(answers, nil)
		}
	}
}

// lost is for a request in flight when the connection was cut: its answer may
// have come just before.
func (c *Client) lost(answers <-chan message, begun <-chan bool) (message, bool, error) {
	select {
	case answer := <-answers:
		return answer, true, nil
	default:
	}
	sent := begun == nil || <-begun
	return message{}, sent, unavailable("the connection to the runner was cut")
}

func (c *Client) register() (uint64, <-chan message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	answers := make(chan message, 1)
	c.waiting[c.last] = answers
	return c.last, answers
}

// forget undoes register for a request that was not sent.
func (c *Client) forget(id uint64, rights []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
	closeRights(rights)
}

func unavailable(message string) *runner.Fault {
	return &runner.Fault{
		Code:      runner.RunnerUnavailable,
		Message:   message,
		Next:      "try again once the runner is back",
		Retryable: true,
	}
}
