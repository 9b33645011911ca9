package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// OutputLimit is the number of bytes retained where nothing else is said.
const OutputLimit = 1 << 20

const (
	outputFirst = 4 << 10   // what a quiet process costs
	outputSlot  = 128 << 10 // the largest single read, and the ring's room beyond the limit
)

// Output is the output of one process: one ordered byte stream of which the
// last limit bytes are retained, addressed by absolute offsets. There is one
// writer at a time (ReadFrom or Write), any number of readers, and the writer
// never waits for a reader.
//
//	      total-limit                total        total+outputSlot
//	───────────┼───────────────────────┼────────────────┤
//	   lost    │       retained        │  writer's slot │   modulo the ring's size
//
// The ring is larger than the limit by one slot, so that a pending read(2) into
// it overwrites nothing that is retained. It grows by doubling, and until it has
// its full size an offset is its index.
type Output struct {
	limit int64

	mu     sync.Mutex // guards what follows; ring[total:total+slot] is the writer's alone
	ring   []byte
	total  int64
	closed bool
	more   chan struct{} // closed at the next byte or at the end; nil while nobody waits
}

// NewOutput returns an empty output that retains limit bytes, at least one.
func NewOutput(limit int64) *Output {
	return &Output{limit: max(limit, 1)}
}

// ReadFrom appends everything r has, reading straight into the ring, and is nil
// at its end. The master of a pseudo-terminal ends with EIO (n_tty_read in
// drivers/tty/n_tty.c) once nobody holds the other side. It does not Close.
func (o *Output) ReadFrom(r io.Reader) (int64, error) {
	var sum int64
	for {
		n, err := r.Read(o.slot())
		sum += int64(n)
		if n > 0 && !o.commit(n) {
			return sum, io.ErrClosedPipe
		}
		if err == io.EOF || errors.Is(err, unix.EIO) {
			return sum, nil
		}
		if err != nil {
			return sum, fmt.Errorf("cannot read output: %w", err)
		}
	}
}

// Write appends p. The error is io.ErrClosedPipe after Close.
func (o *Output) Write(p []byte) (int, error) {
	for written := 0; ; {
		n := copy(o.slot(), p[written:])
		if !o.commit(n) {
			return written, io.ErrClosedPipe
		}
		if written += n; written == len(p) {
			return written, nil
		}
	}
}

// Close marks the end: total is final, and every waiting read is answered.
func (o *Output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.wake()
	return nil
}

// Extent tells how many bytes there were, from which one on they are retained,
// and whether the end has been marked.
func (o *Output) Extent() (total, retainedFrom int64, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total, o.retainedFrom(), o.closed
}

// Read returns at most size bytes from cursor on, or from the first retained
// byte with the difference in Lost. With nothing at cursor it waits for the
// first byte, the end, wait to pass or ctx to end; the last two answer an empty
// chunk and no error. EOF says that the chunk reaches the end. A cursor beyond
// the output is an InvalidArgument *Fault. State is left to the caller.
func (o *Output) Read(ctx context.Context, cursor int64, size int, wait time.Duration) (ReadResult, error) {
	if cursor < 0 || size < 1 {
		return ReadResult{}, &Fault{
			Code:    InvalidArgument,
			Message: fmt.Sprintf("cannot read %d bytes at cursor %d", size, cursor),
			Next:    "give a cursor of at least 0 and a size of at least 1",
		}
	}
	result, more, err := o.take(cursor, size, wait > 0)
	if more == nil || err != nil {
		return result, err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-more:
	case <-timer.C:
	case <-ctx.Done():
	}
	result, _, err = o.take(cursor, size, false)
	return result, err
}

// take answers with what is there. With nothing there and willWait, it returns
// instead a channel that is closed once there is something.
func (o *Output) take(cursor int64, size int, willWait bool) (ReadResult, <-chan struct{}, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if cursor > o.total {
		return ReadResult{}, nil, &Fault{
			Code:    InvalidArgument,
			Message: fmt.Sprintf("cursor %d is beyond the output, output_total is %d", cursor, o.total),
			Next:    "read from the cursor of the last answer",
			Details: map[string]any{"cursor": cursor, "output_total": o.total},
		}
	}
	if willWait && cursor == o.total && !o.closed {
		if o.more == nil {
			o.more = make(chan struct{})
		}
		return ReadResult{}, o.more, nil
	}
	from := max(cursor, o.retainedFrom())
	chunk := o.copyOut(from, min(int64(size), o.total-from))
	next := from + int64(len(chunk))
	return ReadResult{
		Chunk:        chunk,
		Cursor:       next,
		EOF:          o.closed && next == o.total,
		Lost:         from - cursor,
		RetainedFrom: o.retainedFrom(),
	}, nil, nil
}

func (o *Output) retainedFrom() int64 { return max(0, o.total-o.limit) }

// copyOut returns n retained bytes from offset from on.
func (o *Output) copyOut(from, n int64) []byte {
	if n == 0 {
		return nil
	}
	start := from % int64(len(o.ring))
	chunk := append([]byte(nil), o.ring[start:min(start+n, int64(len(o.ring)))]...)
	return append(chunk, o.ring[:n-int64(len(chunk))]...)
}

// slot returns the writer's room after the last byte, never empty. Only the
// writer calls it, and only the writer changes ring and total: reading them here
// needs no lock.
func (o *Output) slot() []byte {
	size, full := int64(len(o.ring)), o.limit+outputSlot
	if o.total == size && size < full {
		grown := make([]byte, min(max(2*size, outputFirst), full))
		copy(grown, o.ring)
		o.mu.Lock()
		o.ring = grown
		o.mu.Unlock()
		size = int64(len(grown))
	}
	start := o.total % size
	return o.ring[start:min(start+outputSlot, size)]
}

// commit makes the first n bytes of the slot output; false after Close.
func (o *Output) commit(n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	if n > 0 {
		o.total += int64(n)
		o.wake()
	}
	return true
}

func (o *Output) wake() {
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
}
