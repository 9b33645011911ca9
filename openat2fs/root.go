package openat2fs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// atOnce is how many calls of one Root run at the same time; others wait for
// their turn. Each holds at most two descriptors.
const atOnce = 32

// Identity is which directory a root must be (stat(2)).
type Identity struct{ Device, Inode uint64 }

// Limits bound what one call does; a field that is 0 is the default of the
// contract.
type Limits struct {
	HashBytes   int64         // of a file that is read or hashed; 64 MiB
	FindPaths   int           // of one page; 10,000
	FindEntries int           // looked at for one page; 50,000. One directory is always looked at whole
	FindDepth   int           // directories above a path that is found; 64
	FindTime    time.Duration // for one page; 5 s
}

func (l Limits) filled() Limits {
	return Limits{
		HashBytes:   cmp.Or(l.HashBytes, 64<<20),
		FindPaths:   cmp.Or(l.FindPaths, 10_000),
		FindEntries: cmp.Or(l.FindEntries, 50_000),
		FindDepth:   min(cmp.Or(l.FindDepth, 64), maxComponents-1),
		FindTime:    cmp.Or(l.FindTime, 5*time.Second),
	}
}

// Root is a directory handle beneath which everything happens. It is safe for
// any number of callers; it holds one descriptor, and two more for each call that
// runs, of which there are at most 32.
type Root struct {
	fd     int
	limits Limits
	turns  chan struct{} // holds one for each call that runs
	nodev  bool          // of its mount
	closed bool          // changed only while holding every turn, read while holding one
}

// Open opens the directory at path, which must be free of links, and compares it
// with what the caller knows it to be. Where openat2 is missing (before Linux
// 5.6, or filtered) it fails with ENOSYS or EPERM: there is no other way in. The
// error is an *Error and does not repeat path.
func Open(path string, want Identity, limits Limits) (*Root, error) {
	fd, err := lookup{dir: unix.AT_FDCWD, name: path, resolve: atRoot,
		flags: unix.O_PATH | unix.O_DIRECTORY}.open() // not O_NOFOLLOW: see directory
	if err != nil {
		return nil, fail("open the root", ".", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, fail("look at the root", ".", err)
	}
	if got := (Identity{st.Dev, st.Ino}); got != want {
		unix.Close(fd)
		return nil, &Error{Code: FileOperationFailed, Op: "open the root", Path: ".",
			Reason: fmt.Sprintf("another directory stands at its path: device %d inode %d, not %d and %d", got.Device, got.Inode, want.Device, want.Inode)}
	}
	return newRoot(fd, limits), nil
}

// Adopt makes a root of the handle of a directory (O_PATH) that another process has
// opened, and owns it.
func Adopt(fd int, limits Limits) (*Root, error) {
	st, err := statOf(fd)
	if err != nil {
		return nil, fail("look at the root", ".", err)
	}
	if st.Kind != Directory {
		return nil, fail("use the root", ".", unix.ENOTDIR)
	}
	return newRoot(fd, limits), nil
}

func newRoot(fd int, limits Limits) *Root {
	return &Root{fd: fd, nodev: nodev(fd), limits: limits.filled(), turns: make(chan struct{}, atOnce)}
}

// Dup is another descriptor of the handle, for a process that is to Adopt it.
func (r *Root) Dup() (int, error) {
	if err := r.enter(context.Background()); err != nil {
		return -1, err
	}
	defer r.leave()
	fd, err := unix.FcntlInt(uintptr(r.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, fail("use the root", ".", err)
	}
	return fd, nil
}

// nodev says whether the mount of a handle opens no devices (statfs(2)).
func nodev(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Flags&(unix.ST_NODEV|stValid) == unix.ST_NODEV|stValid
}

// stValid says that the kernel filled the flags in (ST_VALID, linux/statfs.h).
const stValid = 0x20

// Close waits for the calls that run and gives the handle back. Later calls, and
// a second Close, fail with EBADF. Dirs and Temps stay open.
func (r *Root) Close() error {
	for range atOnce {
		r.turns <- struct{}{}
	}
	defer func() {
		for range atOnce {
			<-r.turns
		}
	}()
	if r.closed {
		return fail("close", ".", unix.EBADF)
	}
	r.closed = true
	return unix.Close(r.fd)
}

// enter waits for a turn; leave gives it back.
func (r *Root) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return ended(".", err)
	}
	select {
	case r.turns <- struct{}{}:
	case <-ctx.Done():
		return ended(".", ctx.Err())
	}
	if r.closed {
		r.leave()
		return fail("use the root", ".", unix.EBADF)
	}
	return nil
}

func (r *Root) leave() { <-r.turns }

// at is a path as the name of a lookup.
func (r *Root) at(p Path) source {
	return source{dir: r.fd, name: p.String(), path: p.String(), nodev: r.nodev}
}

// ended is the error of a context that was over first.
func ended(path string, err error) error {
	return fmt.Errorf("cannot finish with %q: %w", path, err)
}
