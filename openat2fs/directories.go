package openat2fs

import (
	"bytes"
	"context"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Fd is the handle's number, for a call that takes nothing else. It stays the
// Dir's own and is another directory's once the Dir is closed.
func (d *Dir) Fd() int { return d.fd }

// Identity says which directory this is, wherever it has been moved.
func (d *Dir) Identity() (Identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(d.fd, &st); err != nil {
		return Identity{}, fail("look at", d.path.String(), err)
	}
	return Identity{st.Dev, st.Ino}, nil
}

// Directories names the directories in this one, in no order and at most so many:
// where there are that many there may be more. entries counts what was looked at, of
// any kind; what is made or removed meanwhile is in it or not. No name was opened.
func (d *Dir) Directories(ctx context.Context, most int) (names []Name, entries int, err error) {
	if _, err := unix.Seek(d.fd, 0, unix.SEEK_SET); err != nil {
		return nil, 0, fail("list", d.path.String(), err)
	}
	buf := dirents.Get().(*[direntBytes]byte)
	defer dirents.Put(buf)
	f := &filter{fd: d.fd}
	for len(names) < most {
		if err := ctx.Err(); err != nil {
			return nil, 0, ended(d.path.String(), err)
		}
		n, err := unix.Getdents(d.fd, buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, 0, fail("list", d.path.String(), err)
		}
		if n == 0 {
			break
		}
		for rest := buf[:n]; len(rest) > 0 && len(names) < most; {
			var e dirent
			e, rest = nextDirent(rest)
			if e.name == nil {
				continue
			}
			entries++
			if e.kind == unix.DT_DIR || e.kind == unix.DT_UNKNOWN && f.isDirectory(e.name) {
				names = append(names, Name{string(e.name)})
			}
		}
	}
	return names, entries, nil
}

// dirent is one entry of a directory; name is nil for "." and "..".
type dirent struct {
	name []byte
	kind byte
}

// nextDirent takes the first linux_dirent64 (getdents(2)) of a buffer: inode 8
// bytes, offset 8, record length 2, type 1, name and NUL.
func nextDirent(buf []byte) (e dirent, rest []byte) {
	if len(buf) <= 19 {
		return e, nil
	}
	length := int(binary.NativeEndian.Uint16(buf[16:]))
	if length <= 19 || length > len(buf) {
		return e, nil // no kernel does this
	}
	name := buf[19:length]
	if end := bytes.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	if len(name) == 0 || name[0] == '.' && (len(name) == 1 || len(name) == 2 && name[1] == '.') {
		return e, buf[length:]
	}
	return dirent{name, buf[18]}, buf[length:]
}
