package container

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// clonePath takes a detached copy of the mount at a path. No component of it may be
// a link: what was checked when the path was registered is what is mounted.
func clonePath(path string, recursive bool) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return -1, fmt.Errorf("cannot open %s: %w", path, err)
	}
	defer unix.Close(fd)
	return cloneFD(fd, recursive)
}

// cloneFD takes a detached copy of the mount at an open descriptor, so that
// what was checked is what is mounted.
func cloneFD(fd int, recursive bool) (int, error) {
	var deep uint
	if recursive {
		deep = unix.AT_RECURSIVE
	}
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_NO_AUTOMOUNT|deep)
	if err != nil {
		return -1, fmt.Errorf("cannot clone a mount: %w", err)
	}
	return tree, nil
}

// attributes sets mount attributes on a detached tree, recursively, and makes it
// private: nothing propagates in or out.
func attributes(tree int, set uint64) error {
	a := unix.MountAttr{Attr_set: set, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &a); err != nil {
		return fmt.Errorf("cannot set mount attributes: %w", err)
	}
	return nil
}

// tmpfs makes a detached tmpfs.
func tmpfs(attrs int, options map[string]string) (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("cannot open tmpfs: %w", err)
	}
	defer unix.Close(fs)
	for k, v := range options {
		if err := unix.FsconfigSetString(fs, k, v); err != nil {
			return -1, fmt.Errorf("cannot set tmpfs option %s=%s: %w", k, v, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("cannot create tmpfs: %w", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return -1, fmt.Errorf("cannot mount tmpfs: %w", err)
	}
	return fd, nil
}

// tree is a directory tree under construction, below one open directory. Every
// path is walked component by component without following a link: part of what
// is mounted below belongs to the workspace.
type tree struct{ root int }

// parent opens the directory that holds the last component, making what is
// missing, owned by own.
func (t tree) parent(path string, own owner) (dir int, name string, err error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	dir, err = unix.FcntlInt(uintptr(t.root), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return -1, "", err
	}
	for _, p := range parts[:len(parts)-1] {
		next, err := enter(dir, p, own)
		unix.Close(dir)
		if err != nil {
			return -1, "", fmt.Errorf("cannot make %s: %w", path, err)
		}
		dir = next
	}
	return dir, parts[len(parts)-1], nil
}

type owner struct{ uid, gid int }

// nobody stands for the helper's own ids (chown(2) takes -1 for "as it is"), which
// a plain user's helper and its sandbox's user have in common.
var nobody = owner{-1, -1}

// enter makes a directory if it is missing, and opens it. One that is nobody's is
// not writable, so that nothing is left beside a workspace by mistake.
func enter(dir int, name string, own owner) (int, error) {
	made, mode := true, uint32(0o755)
	if own == nobody {
		mode = 0o555
	}
	if err := unix.Mkdirat(dir, name, mode); err == unix.EEXIST {
		made = false
	} else if err != nil {
		return -1, err
	}
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if made {
		err = unix.Fchownat(fd, "", own.uid, own.gid, unix.AT_EMPTY_PATH)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// directory makes a directory and all above it.
func (t tree) directory(path string, own owner) error {
	dir, name, err := t.parent(path, own)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := enter(dir, name, own)
	if err != nil {
		return fmt.Errorf("cannot make %s: %w", path, err)
	}
	return unix.Close(fd)
}

// file makes a file with content.
func (t tree) file(path, content string) error {
	dir, name, err := t.parent(path, nobody)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("cannot make %s: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	_, err = f.WriteString(content)
	return err
}

// link makes a symbolic link.
func (t tree) link(target, path string) error {
	dir, name, err := t.parent(path, nobody)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if err := unix.Symlinkat(target, dir, name); err != nil {
		return fmt.Errorf("cannot make link %s: %w", path, err)
	}
	return nil
}

// attach makes a mount point of the right kind at path and attaches the
// detached mount to it. It closes mount.
func (t tree) attach(mount int, path string, own owner) error {
	defer unix.Close(mount)
	var st unix.Stat_t
	if err := unix.Fstat(mount, &st); err != nil {
		return err
	}
	dir, name, err := t.parent(path, own)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = unix.Mkdirat(dir, name, 0o755)
	} else {
		err = unix.Mknodat(dir, name, unix.S_IFREG|0o644, 0)
	}
	if err != nil && err != unix.EEXIST {
		return fmt.Errorf("cannot make mount point %s: %w", path, err)
	}
	at, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open mount point %s: %w", path, err)
	}
	defer unix.Close(at)
	if err := unix.MoveMount(mount, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("cannot mount at %s: %w", path, err)
	}
	return nil
}
