package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codespace/gateway"
	"codespace/runner"
)

// ServeLines serves one client that sends a JSON message a line on in and reads
// answers, a line each, from out. A line that is no message gets a protocol error
// and the session goes on.
//
// When in or ctx ends, nothing more is read, waits for output end at once, every
// request already read is answered, and ServeLines returns nil. It returns an
// error only if in or out fails. It closes neither: a read of in that is still
// blocked then ends when the caller closes in, and a client that does not take
// its answers holds ServeLines until the caller closes out.
func (s *Server) ServeLines(ctx context.Context, in io.Reader, out io.Writer, p gateway.Principal) error {
	// Requests outlive ctx: what has been read is still answered.
	base := context.WithoutCancel(ctx)
	ended, end := context.WithCancel(base)
	defer end()
	c := &lineConn{
		lines:  make(chan line),
		stop:   ctx.Done(),
		closed: make(chan struct{}),
		end:    end,
		out:    out,
	}
	go c.pump(in)
	connected, err := s.sdk.Connect(context.WithValue(base, sessionKey{}, session{principal: p, ended: ended}), c, nil)
	if err != nil {
		return fmt.Errorf("cannot start an MCP session: %w", err)
	}
	return connected.Wait()
}

// lineConn is the transport of one ServeLines: an mcp.Transport that connects
// to itself. The SDK drops every answer it has not written when Read fails, so
// Read holds the end of input back until all is answered.
type lineConn struct {
	lines  chan line
	broken error // why lines was closed, nil for the end of input
	stop   <-chan struct{}
	end    context.CancelFunc // ends waits for output
	flight flight

	closing sync.Once
	closed  chan struct{}

	// mu serializes writes: each message is one.
	mu  sync.Mutex
	out io.Writer
}

// Connect returns c.
func (c *lineConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID is empty: a line connection is its own session.
func (c *lineConn) SessionID() string { return "" }

// Close ends the connection without waiting for answers.
func (c *lineConn) Close() error {
	c.closing.Do(func() { close(c.closed); c.end() })
	return nil
}

// pump hands lines to Read until in ends or the connection is closed.
func (c *lineConn) pump(in io.Reader) {
	defer close(c.lines)
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		l, err := readLine(r, maxLine)
		if err != nil && !errors.Is(err, io.EOF) {
			c.broken = fmt.Errorf("cannot read requests: %w", err)
		}
		if err != nil {
			return
		}
		select {
		case c.lines <- l:
		case <-c.closed:
			return
		}
	}
}

// Read returns the next request. It answers what is none by itself.
func (c *lineConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case <-c.closed:
			return nil, io.EOF
		case <-c.stop:
			return nil, c.drain(nil)
		case l, ok := <-c.lines:
			if !ok {
				return nil, c.drain(c.broken)
			}
			if req, err := c.accept(l); req != nil || err != nil {
				return req, err
			}
		}
	}
}

// drain waits until everything is answered and returns why reading has ended.
func (c *lineConn) drain(broken error) error {
	c.end()
	select {
	case <-c.flight.drain():
	case <-c.closed:
	}
	if broken != nil {
		return broken
	}
	return io.EOF
}

// accept returns the request in l, or nil if l has been dealt with.
func (c *lineConn) accept(l line) (jsonrpc.Message, error) {
	if l.tooLong {
		text := fmt.Sprintf("line is longer than the limit of %d bytes", maxLine)
		return nil, c.send((&refused{code: jsonrpc.CodeInvalidRequest, text: text}).encode(), nothing)
	}
	req, bad := parse(l.text)
	switch {
	case bad != nil:
		return nil, c.send(bad.encode(), nothing)
	case req == nil:
		return nil, nil
	case !req.IsCall():
		return req, nil
	}
	switch c.flight.begin(req.ID, len(l.text)) {
	case inUse: // an error with this id would be taken for the other request's answer
		text := "the id of this request is that of one not yet answered"
		return nil, c.send((&refused{code: jsonrpc.CodeInvalidRequest, text: text}).encode(), nothing)
	case full:
		return nil, c.write(overload(req), nothing)
	}
	return req, nil
}

// overload refuses a request because too many are unanswered.
func overload(req *jsonrpc.Request) *jsonrpc.Response {
	fault := &runner.Fault{
		Code:      runner.LimitExceeded,
		Message:   fmt.Sprintf("%d requests or %d bytes of them are unanswered", maxInFlight, maxInFlightBytes),
		Next:      "wait for an answer before sending more",
		Retryable: true,
		Details:   map[string]any{"limit": maxInFlight},
	}
	if req.Method != callTool {
		return &jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{Code: codeServer, Message: fault.Error()}}
	}
	result, _ := json.Marshal(refusal(fault)) // strings and numbers: cannot fail
	return &jsonrpc.Response{ID: req.ID, Result: result}
}

// Write sends a message and counts the request it answers.
func (c *lineConn) Write(_ context.Context, msg jsonrpc.Message) error {
	resp, ok := msg.(*jsonrpc.Response)
	if ok && c.flight.answering(resp.ID) {
		defer c.flight.answered()
		return c.write(msg, c.flight.writing)
	}
	return c.write(msg, nothing)
}

// nothing is done before what answers no request that counts.
func nothing() {}

// write sends a message, after before, with nothing else between the two.
func (c *lineConn) write(msg jsonrpc.Message, before func()) error {
	if resp, ok := msg.(*jsonrpc.Response); ok && resp.Error != nil {
		resp.Error = wireError(resp.Error)
	}
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		before()
		return fmt.Errorf("cannot encode an answer: %w", err)
	}
	return c.send(data, before)
}

// send writes one line. A failure ends the connection: nothing can be answered.
func (c *lineConn) send(data []byte, before func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before()
	if _, err := c.out.Write(append(data, '\n')); err != nil {
		c.Close()
		return fmt.Errorf("cannot write an answer: %w", err)
	}
	return nil
}

// codeServer is JSON-RPC's code for errors of a server's own.
const codeServer = -32000

// wireError makes the SDK's errors fit to be sent: some have no code, some quote
// the whole request and name Go types.
func wireError(err error) error {
	wire := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	var coded *jsonrpc.Error
	switch {
	case errors.As(err, &coded) && coded.Code != 0:
		wire.Code, wire.Data = coded.Code, coded.Data
	case errors.Is(err, context.Canceled):
		wire.Code, wire.Message = codeServer, "the request was cancelled before it started"
	}
	if before, _, quotes := strings.Cut(wire.Message, ": unmarshaling"); quotes {
		wire.Message = before + ": params do not have the shape of this method"
	}
	wire.Message = clip(wire.Message, 256)
	return wire
}
