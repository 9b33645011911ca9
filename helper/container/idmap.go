package container

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"codespace/sandbox"

	"golang.org/x/sys/unix"
)

// idMap makes a detached tree show files of the disk owner as files of the
// sandbox's own ids and store its files as the disk owner's. Files of anybody
// else show as nobody's. MOUNT_ATTR_IDMAP (Linux 5.12) answers EINVAL where the
// file system cannot (overlayfs).
func idMap(tree int, who sandbox.Identity) error {
	ns, err := userNamespace(who)
	if err != nil {
		return sandbox.Fail("id map", 0, err)
	}
	defer ns.Close()
	a := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd())}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &a); err != nil {
		var st unix.Statfs_t
		unix.Fstatfs(tree, &st)
		return sandbox.Fail("id-mapped mount", 0, fmt.Errorf("file system of type %#x: %w", st.Type, err))
	}
	return nil
}

// userNamespace returns a user namespace that maps the disk ids to the host ids.
// A child of this program, which never starts a Go runtime, keeps it alive until
// it is open here.
func userNamespace(who sandbox.Identity) (*os.File, error) {
	cmd := exec.Command("/proc/self/exe", "hold")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: who.DiskUID, HostID: who.HostUID, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: who.DiskGID, HostID: who.HostGID, Size: 1}},
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
