package mcpserver

import (
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Bounds of the requests one connection may have unanswered. Beyond them a
// request is refused at once, so that reading never stops and a cancellation
// always gets through.
const (
	maxInFlight      = 256
	maxInFlightBytes = 64 << 20
)

// flight knows the requests that are read and not yet answered.
type flight struct {
	mu      sync.Mutex
	open    map[jsonrpc.ID]int // bytes of each request
	bytes   int
	held    int           // requests that count against the bound
	unsaid  int           // requests whose answer is not yet written
	drained chan struct{} // set by drain, closed at the last answer
}

// admission is what begin says about a request.
type admission int

const (
	admitted admission = iota
	inUse              // its id is that of an open request
	full
)

func (f *flight) begin(id jsonrpc.ID, size int) admission {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.open[id]; ok {
		return inUse
	}
	if f.held >= maxInFlight || f.bytes+size > maxInFlightBytes {
		return full
	}
	if f.open == nil {
		f.open = map[jsonrpc.ID]int{}
	}
	f.open[id] = size
	f.bytes += size
	f.held++
	f.unsaid++
	return admitted
}

// answering frees id for reuse, which a client may do as soon as it sees the answer.
func (f *flight) answering(id jsonrpc.ID) (open bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	size, open := f.open[id]
	f.bytes -= size
	delete(f.open, id)
	return open
}

// writing makes room for another request just before an answer is written: a client
// that has read it may send the next at once. Answers are written one at a time, so
// that at most one more than the bound is held.
func (f *flight) writing() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held--
}

// answered counts an answer that has been written, or cannot be.
func (f *flight) answered() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unsaid--
	if f.unsaid == 0 && f.drained != nil {
		close(f.drained)
	}
}

// drain returns a channel that is closed once everything is answered. It is
// called once, when no more requests begin.
func (f *flight) drain() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drained = make(chan struct{})
	if f.unsaid == 0 {
		close(f.drained)
	}
	return f.drained
}
