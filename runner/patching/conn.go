package patching

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxFrame bounds one frame in bytes. The largest patch and the largest plan are smaller.
const maxFrame = 32 << 20

// Conn is one end of the socket pair of a patch helper, for one caller at a time. It
// blocks: who wants to give up ends the helper.
//
// A frame is the length of its JSON and of its body, each 4 bytes in big endian, and
// the two. Descriptors come with its first byte.
type Conn struct{ fd int }

// Pair makes two connected ends; theirs is to be inherited by a helper. Both are
// close-on-exec.
func Pair() (ours *Conn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return &Conn{fds[0]}, os.NewFile(uintptr(fds[1]), "patch helper"), nil
}

// Inherited is the end that a helper was started with.
func Inherited(fd int) *Conn {
	unix.CloseOnExec(fd)
	return &Conn{fd}
}

// Close gives the end back; the other then reads io.EOF.
func (c *Conn) Close() error { return unix.Close(c.fd) }

// Send sends one frame. The descriptors stay open here.
func (c *Conn) Send(message any, body []byte, fds ...int) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(text)+len(body) > maxFrame {
		return fmt.Errorf("cannot send %d bytes: a frame holds %d", len(text)+len(body), maxFrame)
	}
	var head [8]byte
	binary.BigEndian.PutUint32(head[:4], uint32(len(text)))
	binary.BigEndian.PutUint32(head[4:], uint32(len(body)))
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	if err := c.write(append(head[:], text...), rights); err != nil {
		return err
	}
	return c.write(body, nil)
}

func (c *Conn) write(b, rights []byte) error {
	for len(b) > 0 {
		n, err := unix.SendmsgN(c.fd, b, rights, nil, unix.MSG_NOSIGNAL)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("sendmsg", err)
		}
		b, rights = b[n:], nil
	}
	return nil
}

// maxRights is how many descriptors a frame may bring.
const maxRights = 2

// Receive reads one frame into message and returns its body and descriptors, which
// are close-on-exec. At the end it is io.EOF.
func (c *Conn) Receive(message any) (body []byte, fds []int, err error) {
	var head [8]byte
	fds, err = c.begin(head[:])
	if err == nil {
		body, err = c.rest(head, message)
	}
	if err != nil {
		closeAll(fds)
		return nil, nil, err
	}
	return body, fds, nil
}

// begin reads a frame's head and its descriptors.
func (c *Conn) begin(head []byte) ([]int, error) {
	oob := make([]byte, unix.CmsgSpace(4*maxRights))
	for {
		n, on, flags, _, err := unix.Recvmsg(c.fd, head, oob, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, os.NewSyscallError("recvmsg", err)
		}
		fds := rights(oob[:on])
		if flags&unix.MSG_CTRUNC != 0 {
			return fds, fmt.Errorf("cannot accept more than %d descriptors", maxRights)
		}
		if n == 0 {
			return fds, io.EOF
		}
		return fds, c.read(head[n:])
	}
}

func (c *Conn) rest(head [8]byte, message any) ([]byte, error) {
	text, body := binary.BigEndian.Uint32(head[:4]), binary.BigEndian.Uint32(head[4:])
	if uint64(text)+uint64(body) > maxFrame {
		return nil, fmt.Errorf("cannot accept a frame of %d and %d bytes: one holds %d", text, body, maxFrame)
	}
	frame := make([]byte, int(text)+int(body))
	if err := c.read(frame); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(frame[:text], message); err != nil {
		return nil, fmt.Errorf("cannot read a frame: %w", err)
	}
	return frame[text:], nil
}

// read fills b.
func (c *Conn) read(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Read(c.fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("read", err)
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		b = b[n:]
	}
	return nil
}

func rights(oob []byte) []int {
	var fds []int
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range messages {
		if got, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	return fds
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
