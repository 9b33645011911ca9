package openat2fs

import (
	"context"

	"golang.org/x/sys/unix"
)

// Dir is a handle on a directory beneath a root, for changing what is in it. What
// it does is done by name in that very directory, wherever it has been moved
// meanwhile, and never follows a link. It holds one descriptor, which is the
// caller's to close, and is for one caller at a time.
type Dir struct {
	fd    int
	path  Path // when it was opened
	nodev bool // of its mount
	limit int64
}

// OpenDir opens a directory; the root is a valid path.
func (r *Root) OpenDir(ctx context.Context, p Path) (*Dir, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.leave()
	return openDir(r.fd, p.String(), Dir{path: p, nodev: r.nodev, limit: r.limits.HashBytes})
}

// openDir opens for reading, which fsync needs, and is d with that handle.
func openDir(dir int, name string, d Dir) (*Dir, error) {
	fd, err := lookup{dir: dir, name: name, flags: unix.O_RDONLY | directory}.open()
	if err != nil {
		return nil, fail("open", d.path.String(), err)
	}
	d.fd = fd
	return &d, nil
}

// OpenOrMake opens a directory in this one and makes it, with the permission bits of
// mode less the umask, where nothing is: isNew, also when it then cannot be opened.
func (d *Dir) OpenOrMake(name Name, mode uint32) (below *Dir, isNew bool, err error) {
	below, err = d.Open(name)
	if e, ok := err.(*Error); !ok || e.Code != FileNotFound {
		return below, false, err
	}
	err = d.Mkdir(name, mode)
	isNew = err == nil
	if e, ok := err.(*Error); ok && e.Errno != unix.EEXIST {
		return nil, false, err
	}
	below, err = d.Open(name) // says what else there is, if somebody was faster
	return below, isNew, err
}

// Path is where the directory was when it was opened.
func (d *Dir) Path() Path { return d.path }

// Close gives the handle back. A second Close fails with EBADF.
func (d *Dir) Close() error {
	fd := d.fd
	d.fd = -1
	if err := unix.Close(fd); err != nil {
		return fail("close", d.path.String(), err)
	}
	return nil
}

// Open opens a directory in this one.
func (d *Dir) Open(name Name) (*Dir, error) {
	p, err := d.path.Join(name)
	if err != nil {
		return nil, err
	}
	return openDir(d.fd, name.text, Dir{path: p, nodev: d.nodev, limit: d.limit})
}

// Stat says what a name stands for, without following or opening it.
func (d *Dir) Stat(name Name) (Stat, error) { return d.at(name).stat() }

// Load is Root.Load of a name in this directory.
func (d *Dir) Load(ctx context.Context, name Name, buf []byte) ([]byte, Stat, error) {
	return d.at(name).load(ctx, buf, d.limit)
}

// Mkdir makes a directory with the permission bits of mode less the umask. Where
// anything stands there already the error is EEXIST.
func (d *Dir) Mkdir(name Name, mode uint32) error {
	return d.change("make", name, func() error { return unix.Mkdirat(d.fd, name.text, mode&0o777) })
}

// Unlink removes anything but a directory; of a link, the link.
func (d *Dir) Unlink(name Name) error {
	return d.change("remove", name, func() error { return unix.Unlinkat(d.fd, name.text, 0) })
}

// Rmdir removes an empty directory.
func (d *Dir) Rmdir(name Name) error {
	return d.change("remove", name, func() error { return unix.Unlinkat(d.fd, name.text, unix.AT_REMOVEDIR) })
}

// Sync waits until the names in the directory are on the disk (fsync(2)).
func (d *Dir) Sync() error {
	if err := uninterrupted(func() error { return unix.Fsync(d.fd) }); err != nil {
		return fail("sync", d.path.String(), err)
	}
	return nil
}

// Place is a name in a directory.
type Place struct {
	Dir  *Dir
	Name Name
}

// Renaming says what Rename does where something is at the new place.
type Renaming uint

const (
	Replace  Renaming = 0
	Keep     Renaming = unix.RENAME_NOREPLACE // it stays, and the error is EEXIST
	Exchange Renaming = unix.RENAME_EXCHANGE  // the two change places; there must be something
)

// Rename moves in one step (renameat2(2)). A link at either place is itself moved
// or replaced.
func Rename(from, to Place, how Renaming) error {
	return to.Dir.change("rename to", to.Name, func() error {
		return unix.Renameat2(from.Dir.fd, from.Name.text, to.Dir.fd, to.Name.text, uint(how))
	})
}

// change makes a call on a name, the last and only component of what the kernel
// is given: none of the calls above follows a link there (path_resolution(7)).
func (d *Dir) change(op string, name Name, call func() error) error {
	if err := uninterrupted(call); err != nil {
		return fail(op, d.at(name).path, err)
	}
	return nil
}

func (d *Dir) at(name Name) source {
	path := name.text
	if !d.path.IsRoot() {
		path = d.path.text + "/" + path
	}
	return source{dir: d.fd, name: name.text, path: path, nodev: d.nodev}
}
