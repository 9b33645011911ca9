package container

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"codespace/sandbox"

	"golang.org/x/sys/unix"
)

// idMap makes a detached tree show files of its root's owner as to's and store to's
// files as that owner's. Files of anybody else show as nobody's. A tree that
// belongs to to already needs nothing. MOUNT_ATTR_IDMAP (Linux 5.12) answers EINVAL
// where the file system cannot (overlayfs).
func idMap(tree int, to owner) error {
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return sandbox.Fail("id map", 0, err)
	}
	disk := owner{int(st.Uid), int(st.Gid)}
	if disk == to {
		return nil
	}
	ns, err := userNamespace(disk, to)
	if err != nil {
		return sandbox.Fail("id map", 1, err)
	}
	defer ns.Close()
	a := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd())}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &a); err != nil {
		var fs unix.Statfs_t
		unix.Fstatfs(tree, &fs)
		return sandbox.Fail("id-mapped mount", 0, fmt.Errorf("file system of type %#x: %w", fs.Type, err))
	}
	return nil
}

// userNamespace returns a user namespace that maps the disk ids to the host ids.
// A child of this program, which never starts a Go runtime, keeps it alive until
// it is open here.
func userNamespace(disk, host owner) (*os.File, error) {
	cmd := exec.Command("/proc/self/exe", "hold")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: disk.uid, HostID: host.uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: disk.gid, HostID: host.gid, Size: 1}},
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the holder of an id map: %w", err)
	}
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	stdin.Close()
	cmd.Wait()
	return ns, err
}
