package message

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// MaxBytes bounds one datagram of either protocol, in bytes.
const MaxBytes = 64 << 10

const maxFiles = 4

// Channel is one end of a SEQPACKET socket pair: whole messages, each with at
// most four descriptors, which arrive close-on-exec. Send and Receive may be
// called from different goroutines, each from one at a time.
type Channel struct{ conn *net.UnixConn }

// New takes over f, which must be a connected SEQPACKET socket.
func New(f *os.File) (*Channel, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("cannot use socket: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("cannot use socket: it is %T", c)
	}
	return &Channel{u}, nil
}

// Pair makes two connected ends, both close-on-exec.
func Pair() (a, b *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "channel"), os.NewFile(uintptr(fds[1]), "channel"), nil
}

// Send sends one message; files are duplicated to the peer and stay open here. A
// peer that takes nothing for 10 s is an error.
func (c *Channel) Send(b []byte, files ...*os.File) error {
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		oob = unix.UnixRights(fds...)
	}
	c.conn.SetWriteDeadline(time.Now().Add(peerTimeout))
	_, _, err := c.conn.WriteMsgUnix(b, oob, nil)
	return err
}

// peerTimeout bounds the wait for a peer that does not take messages.
const peerTimeout = 10 * time.Second

// Await is Receive for an answer that must come within limit.
func (c *Channel) Await(buf []byte, limit time.Duration) ([]byte, []*os.File, error) {
	c.conn.SetReadDeadline(time.Now().Add(limit))
	defer c.conn.SetReadDeadline(time.Time{})
	return c.Receive(buf)
}

// Receive returns the next message and the descriptors that came with it. It
// returns io.EOF when the peer is gone.
func (c *Channel) Receive(buf []byte) ([]byte, []*os.File, error) {
	oob := make([]byte, unix.CmsgSpace(4*maxFiles))
	n, on, flags, _, err := c.conn.ReadMsgUnix(buf, oob)
	// An empty message reads as the end, and may still bring descriptors.
	files, ferr := Files(oob[:on])
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
		err = io.EOF
	case err == nil && flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		err = fmt.Errorf("message larger than %d bytes or %d descriptors", len(buf), maxFiles)
	case err == nil:
		err = ferr
	}
	if err != nil {
		CloseAll(files)
		return nil, nil, err
	}
	return buf[:n], files, nil
}

// Files takes the descriptors out of received control data. They must have been
// received close-on-exec.
func Files(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range msgs {
		fds, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

// Close closes this end; the peer sees the end of the channel.
func (c *Channel) Close() error { return c.conn.Close() }

// CloseAll closes descriptors that are not wanted.
func CloseAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// Sealed returns a memfd that holds b and can never change.
func Sealed(name string, b []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(b); err != nil {
		f.Close()
		return nil, err
	}
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, os.NewSyscallError("fcntl", err)
	}
	return f, nil
}
