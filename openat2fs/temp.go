package openat2fs

import (
	"crypto/rand"
	"strings"

	"golang.org/x/sys/unix"
)

// A temporary is named by this and 26 letters and digits (rand.Text), so that
// nobody can have put something at its place before, and find can tell it.
const temporaryMark = ".codespace-tmp-"

// Reserved says whether a name begins as those of temporaries do.
func (n Name) Reserved() bool { return strings.HasPrefix(n.text, temporaryMark) }

func isTemporary(name []byte) bool {
	const base32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	if len(name) != len(temporaryMark)+26 || string(name[:len(temporaryMark)]) != temporaryMark {
		return false
	}
	for _, c := range name[len(temporaryMark):] {
		if strings.IndexByte(base32, c) < 0 {
			return false
		}
	}
	return true
}

// Temp is a new file beside the one it is to replace: written, given its mode,
// synced, closed, and then renamed from its Place. Find does not show it; what a
// killed process leaves is found by Query.Temporaries. It is for one caller at a
// time.
type Temp struct {
	Place
	fd int
}

// TempName makes a new name for CreateTemp, which nobody can guess.
func TempName() Name { return Name{temporaryMark + rand.Text()} }

// CreateTemp makes an empty file of mode 0600. Its name must be one of TempName;
// where anything has it already the error is EEXIST.
func (d *Dir) CreateTemp(name Name) (*Temp, error) {
	if !isTemporary([]byte(name.text)) {
		return nil, &Error{Code: InvalidArgument, Op: "make", Path: d.at(name).path, Reason: "it is no name of a temporary"}
	}
	fd, err := lookup{dir: d.fd, name: name.text, mode: 0o600,
		flags: unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW}.open()
	if err != nil {
		return nil, fail("make", d.at(name).path, err)
	}
	return &Temp{Place: Place{d, name}, fd: fd}, nil
}

// Write writes all of p.
func (t *Temp) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n, err := unix.Write(t.fd, p[written:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return written, t.fail("write", err)
		}
		written += n
	}
	return written, nil
}

// SetOwner gives the file to a user and group. It is to come before SetMode,
// which a change of owner may undo in part (chown(2)).
func (t *Temp) SetOwner(uid, gid int) error {
	return t.do("change the owner of", func() error { return unix.Fchown(t.fd, uid, gid) })
}

// SetMode sets the permission bits of mode, and never setuid, setgid or sticky.
func (t *Temp) SetMode(mode uint32) error {
	return t.do("change the mode of", func() error { return unix.Fchmod(t.fd, mode&0o777) })
}

// Sync waits until the content is on the disk (fsync(2)).
func (t *Temp) Sync() error {
	return t.do("sync", func() error { return unix.Fsync(t.fd) })
}

// Close gives the descriptor back; the file stays. A second Close fails with
// EBADF.
func (t *Temp) Close() error {
	fd := t.fd
	t.fd = -1
	if err := unix.Close(fd); err != nil {
		return t.fail("close", err)
	}
	return nil
}

func (t *Temp) do(op string, call func() error) error {
	if err := uninterrupted(call); err != nil {
		return t.fail(op, err)
	}
	return nil
}

func (t *Temp) fail(op string, err error) error {
	return fail(op, t.Dir.at(t.Name).path, err)
}
