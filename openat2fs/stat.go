package openat2fs

import (
	"context"

	"golang.org/x/sys/unix"
)

// Kind is what a name stands for.
type Kind string

const (
	File      Kind = "file"
	Directory Kind = "directory"
	Link      Kind = "link"
	FIFO      Kind = "fifo"
	Socket    Kind = "socket"
	Device    Kind = "device"
	Unknown   Kind = "unknown"
)

// Stat is what fstat(2) says of one file.
type Stat struct {
	Kind          Kind
	Mode          uint32 // permission bits, and setuid, setgid and sticky: 0o7777 at most
	Size          int64  // bytes
	Links         uint64 // names; more than one may mean one outside the workspace
	UID, GID      uint32
	Device, Inode uint64
	moment        moment
}

// moment is what a change of the content or the inode moves on. The change time
// cannot be set back by a process; from Linux 6.13 on it also tells changes
// apart that begin within one tick (multigrain timestamps).
type moment struct{ modified, changed unix.Timespec }

// Stat says what stands at a path, without following or opening it. The root is a
// valid path.
func (r *Root) Stat(ctx context.Context, p Path) (Stat, error) {
	if err := r.enter(ctx); err != nil {
		return Stat{}, err
	}
	defer r.leave()
	return r.at(p).stat()
}

// stat opens with O_PATH, which has no effect on what is there and needs no right
// to it. With O_NOFOLLOW that gives the handle of a link itself (openat2(2),
// RESOLVE_NO_SYMLINKS).
func (s source) stat() (Stat, error) {
	fd, err := lookup{dir: s.dir, name: s.name, flags: unix.O_PATH | unix.O_NOFOLLOW}.open()
	if err != nil {
		return Stat{}, fail("look at", s.path, err)
	}
	defer unix.Close(fd)
	st, err := statOf(fd)
	if err != nil {
		return Stat{}, fail("look at", s.path, err)
	}
	return st, nil
}

func statOf(fd int) (Stat, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Stat{}, err
	}
	return Stat{
		Kind: kindOf(st.Mode), Mode: st.Mode & 0o7777, Size: st.Size, Links: uint64(st.Nlink),
		UID: st.Uid, GID: st.Gid, Device: st.Dev, Inode: st.Ino,
		moment: moment{st.Mtim, st.Ctim},
	}, nil
}

func kindOf(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return File
	case unix.S_IFDIR:
		return Directory
	case unix.S_IFLNK:
		return Link
	case unix.S_IFIFO:
		return FIFO
	case unix.S_IFSOCK:
		return Socket
	case unix.S_IFBLK, unix.S_IFCHR:
		return Device
	}
	return Unknown
}
