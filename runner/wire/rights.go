package wire

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// maxFiles is the number of descriptors a frame may carry: stdin, stdout, stderr
// and the lease.
const maxFiles = 4

// dupAll duplicates files for sending, so that the caller may close its own at
// any time. closeRights closes the duplicates.
func dupAll(files []*os.File) ([]int, error) {
	var rights []int
	for i, f := range files {
		fd, err := dup(f)
		if err != nil {
			closeRights(rights)
			return nil, fmt.Errorf("cannot duplicate descriptor %d: %w", i, err)
		}
		rights = append(rights, fd)
	}
	return rights, nil
}

// dup leaves f's blocking mode alone, which Fd does not.
func dup(f *os.File) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	failed := raw.Control(func(old uintptr) {
		fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0)
	})
	if failed != nil {
		return -1, failed
	}
	return fd, err
}

func closeRights(rights []int) {
	for _, fd := range rights {
		unix.Close(fd)
	}
}

// parseRights takes the descriptors out of what recvmsg left in control; foreign
// says that there was something else too. They are close-on-exec from birth: the
// net package receives with MSG_CMSG_CLOEXEC.
func parseRights(control []byte) (files []*os.File, foreign bool) {
	if len(control) == 0 {
		return nil, false
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, true
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			foreign = true
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received descriptor"))
		}
	}
	return files, foreign
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
