package openat2fs

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
)

// triesSettled is how often a file is read that is written or exchanged
// meanwhile.
const triesSettled = 8

// source is a file to read: a name beneath a directory handle.
type source struct {
	dir  int
	name string
	path string // what errors call it
	// nodev is true where the mount opens no devices, which holds for everything
	// beneath the root: no lookup leaves its mount.
	nodev bool
}

// open opens a regular file for reading, and nothing else.
//
// A plain open would wait for the writer of a FIFO, and can set a device going.
// So the name is first opened with O_PATH, which touches nothing, and what it is
// is asked of that handle. The second open then can only meet something else if
// the name was exchanged in between; it does not wait (O_NONBLOCK: a FIFO opens
// at once, a socket fails, a file lease gives EAGAIN) and takes no terminal
// (O_NOCTTY). Its handle is compared with the first, which is still open, so that
// the inode's number cannot have been given away: bytes are only ever read from
// the very file that was found to be regular. What is left to an exchange in
// between is that a device is opened, not read; only root could have put one
// there. again is true where it was another.
func (s source) open() (fd int, st Stat, again bool, err error) {
	if fd, st, ok := s.quick(); ok {
		return fd, st, false, nil
	}
	handle, err := lookup{dir: s.dir, name: s.name, flags: unix.O_PATH | unix.O_NOFOLLOW}.open()
	if err != nil {
		return -1, Stat{}, false, fail("open", s.path, err)
	}
	defer unix.Close(handle)
	seen, err := statOf(handle)
	if err != nil {
		return -1, Stat{}, false, fail("open", s.path, err)
	}
	if err := s.regular(seen); err != nil {
		return -1, seen, false, err
	}
	fd, err = lookup{dir: s.dir, name: s.name,
		flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_NOFOLLOW}.open()
	if err != nil {
		return -1, seen, exchanged(err), fail("open", s.path, err)
	}
	st, err = statOf(fd)
	if err == nil && st.Device == seen.Device && st.Inode == seen.Inode {
		return fd, st, false, nil
	}
	unix.Close(fd)
	return -1, seen, true, fail("open", s.path, unix.EAGAIN)
}

// quick opens in one step where no device can be met, which takes two thirds of
// the time of a small file. Whatever is no regular file is closed unread, and left
// to open, which says what it is.
func (s source) quick() (int, Stat, bool) {
	if !s.nodev {
		return -1, Stat{}, false
	}
	fd, err := lookup{dir: s.dir, name: s.name,
		flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_NOFOLLOW}.open()
	if err != nil {
		return -1, Stat{}, false
	}
	st, err := statOf(fd)
	if err == nil && st.Kind == File {
		return fd, st, true
	}
	unix.Close(fd)
	return -1, Stat{}, false
}

func (s source) regular(st Stat) error {
	switch st.Kind {
	case File:
		return nil
	case Link:
		return fail("open", s.path, unix.ELOOP)
	}
	return &Error{Code: SpecialFileRejected, Op: "open", Path: s.path, Reason: string(st.Kind)}
}

// exchanged: what a name that was a regular file a moment ago can only answer
// if it is another one now.
func exchanged(err error) bool {
	switch err {
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV, unix.ENXIO:
		return true
	}
	return false
}

// settled has read take the whole of the file, again if the file changed while it
// did, and PATH_CONTENDED when that never ended. The Stat is that of the file
// before and after a read that took; of a special file, what it is.
func (s source) settled(ctx context.Context, read func(fd int, st Stat) error) (Stat, error) {
	for range triesSettled {
		if err := ctx.Err(); err != nil {
			return Stat{}, ended(s.path, err)
		}
		fd, before, again, err := s.open()
		if again {
			continue
		}
		if err != nil {
			return before, err
		}
		after, err := s.readOpen(fd, before, read)
		if err != nil {
			return before, err
		}
		if after == before {
			return before, nil
		}
	}
	return Stat{}, &Error{Code: PathContended, Op: "read", Path: s.path, Reason: "it was changed while it was read, every time"}
}

// readOpen reads an open file and closes it.
func (s source) readOpen(fd int, before Stat, read func(fd int, st Stat) error) (Stat, error) {
	defer unix.Close(fd)
	if err := read(fd, before); err != nil {
		return Stat{}, err
	}
	after, err := statOf(fd)
	if err != nil {
		return Stat{}, fail("read", s.path, err)
	}
	return after, nil
}

// next reads once into buf: 0 bytes are the end.
func (s source) next(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, fail("read", s.path, err)
		}
		return n, nil
	}
}

// tooLarge is nil where size may be hashed.
func (s source) tooLarge(size, limit int64) error {
	if size <= limit {
		return nil
	}
	return &Error{Code: FileTooLarge, Op: "read", Path: s.path, Reason: fmt.Sprintf("it has more than the %d bytes that are read and hashed", limit)}
}
