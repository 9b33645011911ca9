package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	maxFrame = 16 << 20 // of a frame's length field
	maxHello = 4 << 10  // the same before both sides have greeted
)

// frame is one unit of the stream.
type frame struct {
	header, body []byte
	rights       []int      // descriptors to be sent with it
	files        []*os.File // received with it, and whoever's the frame is
	dropped      bool       // there were more, which the kernel could not or might not give us
}

// readFrame reads exactly one frame. The error is io.EOF only between frames.
func readFrame(r io.Reader, limit uint32) (header, body []byte, err error) {
	var prefix [8]byte
	if _, err := io.ReadFull(r, prefix[:]); err == io.EOF {
		return nil, nil, io.EOF
	} else if err != nil {
		return nil, nil, fmt.Errorf("cannot read frame: %w", err)
	}
	length := binary.BigEndian.Uint32(prefix[:4])
	head := binary.BigEndian.Uint32(prefix[4:])
	if length > limit {
		return nil, nil, fmt.Errorf("cannot accept a frame of %d bytes: more than %d", length, limit)
	}
	if length < 4 || head > length-4 {
		return nil, nil, fmt.Errorf("cannot accept a header of %d bytes in a frame of %d", head, length)
	}
	rest := make([]byte, length-4)
	if _, err := io.ReadFull(r, rest); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, nil, fmt.Errorf("cannot read frame: %w", err)
	}
	return rest[:head], rest[head:], nil
}

// head is the frame without its body, as it is sent.
func (f frame) head() []byte {
	head := make([]byte, 8, 8+len(f.header))
	binary.BigEndian.PutUint32(head, uint32(4+len(f.header)+len(f.body)))
	binary.BigEndian.PutUint32(head[4:], uint32(len(f.header)))
	return append(head, f.header...)
}

// conn is one end of the socket. One goroutine reads; any may send.
type conn struct {
	socket  *net.UnixConn
	control []byte // the reader's, like the next two, which are about the frame being read
	arrived []*os.File
	dropped bool

	mu sync.Mutex // one frame at a time is sent
}

func newConn(socket *net.UnixConn) *conn {
	return &conn{socket: socket, control: make([]byte, unix.CmsgSpace(4*maxFiles))}
}

func (c *conn) close() { c.socket.Close() }

// Read is a recvmsg(2). A frame is read to its last byte and not beyond, and one
// recvmsg never crosses from one sender's descriptors to the next, so what
// arrives belongs to the frame being read.
func (c *conn) Read(p []byte) (int, error) {
	n, controls, flags, _, err := c.socket.ReadMsgUnix(p, c.control)
	files, foreign := parseRights(c.control[:controls])
	c.arrived = append(c.arrived, files...)
	c.dropped = c.dropped || flags&unix.MSG_CTRUNC != 0
	switch {
	case errors.Is(err, io.EOF):
		return n, io.EOF
	case err != nil:
		return n, err
	case foreign || len(c.arrived) > maxFiles:
		return n, fmt.Errorf("cannot accept more than %d descriptors", maxFiles)
	}
	return n, nil
}

// receive returns the next frame and the descriptors that came with it.
func (c *conn) receive(limit uint32) (frame, error) {
	header, body, err := readFrame(c, limit)
	f := frame{header: header, body: body, files: c.arrived, dropped: c.dropped}
	c.arrived, c.dropped = nil, false
	if err != nil {
		closeAll(f.files)
		return frame{}, err
	}
	return f, nil
}

// send writes one frame and tells whether any byte of it may have been
// delivered. After an error the stream is of no use: the caller closes it.
func (c *conn) send(f frame) (begun bool, err error) {
	head := f.head()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(f.rights) > 0 {
		var n int
		n, _, err = c.socket.WriteMsgUnix(head, unix.UnixRights(f.rights...), nil)
		head, begun = head[n:], n > 0
	}
	if err == nil {
		var n int64
		rest := net.Buffers{head, f.body}
		n, err = rest.WriteTo(c.socket)
		begun = begun || n > 0
	}
	return begun, err
}
