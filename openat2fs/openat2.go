package openat2fs

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// beneath is how every name below a root is resolved: never up, over a link or
// into another mount. atRoot is how the root's own path is, once: it may lie on
// any mount.
const (
	beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV
	atRoot  = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
)

// How often a lookup is tried again. The kernel answers EAGAIN where a rename or
// a mount elsewhere kept it from being sure that it stayed beneath (openat2(2)),
// and where O_NONBLOCK met a file lease (open(2)). EXDEV also means that the
// directory was moved out of the root in the moment of opening (namei.c,
// complete_walk); a mount still answers it the next time.
const (
	triesContended = 128
	triesMount     = 3
)

// directory is how a directory is opened. Without O_NOFOLLOW: RESOLVE_NO_SYMLINKS
// refuses a link as the last component too, and says so (ELOOP), where O_NOFOLLOW
// and O_DIRECTORY together call it no directory. O_NONBLOCK does not wait for a
// lease, which NFS has on directories too.
const directory = unix.O_DIRECTORY | unix.O_NONBLOCK

// lookup is one name to be opened beneath a directory handle. The name is a
// Path, a Name or ".".
type lookup struct {
	dir     int
	name    string
	flags   uint64
	mode    uint64 // of a new file
	resolve uint64 // beneath, if 0
}

// open is the one place that calls openat2. The error is a unix.Errno: EAGAIN
// where the bounded tries were not enough, EXDEV where a mount is in the way.
func (l lookup) open() (int, error) {
	if l.resolve == 0 {
		l.resolve = beneath
	}
	mounts := 0
	for tries := 1; ; tries++ {
		fd, err := unix.Openat2(l.dir, l.name, &unix.OpenHow{
			Flags: l.flags | unix.O_CLOEXEC, Mode: l.mode, Resolve: l.resolve})
		switch err {
		case unix.EINTR, unix.EAGAIN:
		case unix.EXDEV:
			mounts++
		default:
			return fd, err
		}
		if tries >= triesContended || mounts >= triesMount {
			return -1, contended(err)
		}
		runtime.Gosched() // whoever is in the way may be waiting for this processor
	}
}

func contended(err error) error {
	if err == unix.EINTR {
		return unix.EAGAIN
	}
	return err
}

// uninterrupted repeats a call that a signal cut short.
func uninterrupted(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
