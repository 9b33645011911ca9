package runner

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"

	"codespace/policy"
	"codespace/sandbox"

	"golang.org/x/sys/unix"
)

// RootOf names the directory that is a workspace's root now, by device and inode.
// The error is a *Fault.
func RootOf(path string) (device, inode uint64, err error) {
	root, _, err := openRoot(path)
	return root.Device, root.Inode, err
}

// openRoot looks at a workspace's root without following any link.
func openRoot(path string) (sandbox.Root, unix.Stat_t, error) {
	var st unix.Stat_t
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err == nil {
		defer unix.Close(fd)
		err = unix.Fstat(fd, &st)
	}
	if err != nil {
		why := map[error]string{unix.ENOENT: "is gone", unix.ELOOP: "or a directory above it became a link",
			unix.ENOTDIR: "is no directory any more", unix.EACCES: "cannot be reached"}[err]
		if why == "" {
			why = "cannot be opened"
		}
		return sandbox.Root{}, st, &Fault{Code: SandboxUnavailable, Message: fmt.Sprintf("workspace root %s: %v", why, err),
			Next: "restore the directory or have the operator register another; nothing was run", Details: map[string]any{"step": "workspace root"}}
	}
	return sandbox.Root{Path: path, Device: st.Dev, Inode: st.Ino}, st, nil
}

// writableRoot refuses a workspace its sandbox could not write although its
// profile says so: a clear refusal instead of a command full of EACCES.
func writableRoot(g policy.Grant, path string, st unix.Stat_t) error {
	if g.Access != policy.AccessWrite {
		return nil
	}
	ok := st.Mode&0o300 == 0o300 // the owner is mapped to the sandbox's user
	if !(sandbox.Host{}).Root() {
		ok = unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK|unix.X_OK, unix.AT_EACCESS) == nil
	}
	if ok {
		return nil
	}
	return &Fault{Code: SandboxUnavailable,
		Message: fmt.Sprintf("workspace root is not writable by its sandbox user (owner %d, mode %04o)", st.Uid, st.Mode&0o7777),
		Next:    "chown or chmod the directory, or register it with the read-only profile; nothing was run", Details: map[string]any{"step": "workspace root"}}
}

// identify chooses who the sandbox is on the host. As the host's root that is a
// uid of the operator's range which no other sandbox has; the returned file
// holds it. Anybody else can only be who they are.
func identify(r policy.Identity, w policy.Workspace, st unix.Stat_t) (sandbox.Identity, *os.File, error) {
	who := (sandbox.Host{}).Starter()
	who.DiskUID, who.DiskGID = int(st.Uid), int(st.Gid)
	if !(sandbox.Host{}).Root() {
		return who, nil, nil
	}
	if w.Identity == "owner" {
		if st.Uid == 0 || st.Gid == 0 {
			return who, nil, &Fault{Code: SandboxUnavailable, Message: "workspace root belongs to root and its identity is \"owner\"",
				Next: "chown the directory to an ordinary user: a sandbox never has host uid 0"}
		}
		who.HostUID, who.HostGID = int(st.Uid), int(st.Gid)
		return who, nil, nil
	}
	uid, hold, err := claimUID(r, w.Root)
	who.HostUID, who.HostGID = uid, uid
	return who, hold, err
}

// claimUID takes a free uid of the range, beginning at one that depends on the
// root so that a workspace usually keeps its own. The claim is an abstract socket:
// the kernel gives each name once and takes it back with its holder's life.
func claimUID(r policy.Identity, root string) (int, *os.File, error) {
	h := fnv.New32a()
	h.Write([]byte(root))
	for i := range r.UIDCount {
		uid := int(r.UIDBase + (h.Sum32()+i)%r.UIDCount)
		f, err := claim(fmt.Sprintf("codespace-uid-%d", uid))
		if errors.Is(err, unix.EADDRINUSE) {
			continue
		}
		return uid, f, err
	}
	return 0, nil, &Fault{Code: SandboxUnavailable, Message: fmt.Sprintf("all %d host ids of the operator's range are in use", r.UIDCount),
		Next: "raise uid_count in [identity] of the configuration"}
}

func claim(name string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + name}); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// makeCaches makes the directories that are shown as caches. They lie in the
// state directory, which no sandbox sees otherwise.
func makeCaches(caches []sandbox.Bind) error {
	for _, c := range caches {
		if err := os.MkdirAll(c.Source, 0o700); err != nil {
			return &Fault{Code: SandboxUnavailable, Message: "cannot make the cache for " + c.Target + " in the state directory: " + errnoOf(err),
				Next: "make the state directory writable (state.dir, or XDG_STATE_HOME)"}
		}
	}
	return nil
}

func errnoOf(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return "unknown error"
}
