package line_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// roles are what this binary does when it is started with -as: a probe that says
// what it could do, in a line for each thing tried. "ok" is a success.
var roles = map[string]func(args []string) error{
	"blocking": blocking,
	"burn":     burn,
	"hold":     hold,
	"threads":  threads,
	"dial":     dial,
	"loopback": loopback,
	"setuid":   setuid,
	"userns":   userNamespace,
	"mount":    mount,
	"trace":    trace,
	"proc":     proc,
	"sysctl":   sysctl,
}

func act(role string, args []string) {
	run := roles[role]
	if run == nil {
		fmt.Fprintln(os.Stderr, "no such role:", role)
		os.Exit(2)
	}
	if err := run(args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	return path
}

// probe is the argv of a role.
func probe(t testing.TB, role string, args ...string) []string {
	t.Helper()
	return append([]string{self(t), "-as", role}, args...)
}

// outside plays a role without a sandbox: the control of an attack.
func outside(t testing.TB, argv []string) string {
	t.Helper()
	return outsideAs(t, argv, nil)
}

func outsideAs(t testing.TB, argv []string, how *syscall.SysProcAttr) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.SysProcAttr = how
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q outside: %v: %s", argv, err, out)
	}
	return string(out)
}

// tried says how one thing went.
func tried(what string, err error) {
	var errno syscall.Errno
	switch {
	case err == nil:
		fmt.Println(what, "ok")
	case errors.As(err, &errno):
		fmt.Println(what, unix.ErrnoName(errno))
	default:
		fmt.Println(what, err)
	}
}

// errno makes an error of a raw call.
func errno(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

// blocking asks whether the standard streams block.
func blocking([]string) error {
	var flags [3]int
	for fd := range flags { // before anything is said: that could change them
		var err error
		if flags[fd], err = unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil {
			return err
		}
	}
	for fd, f := range flags {
		var err error
		if f&unix.O_NONBLOCK != 0 {
			err = unix.EAGAIN
		}
		tried(strconv.Itoa(fd), err)
	}
	return nil
}

// burn spends milliseconds of processor time.
func burn(args []string) error {
	ms, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for spent := time.Duration(0); spent < time.Duration(ms)*time.Millisecond; {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			return err
		}
		spent = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return nil
}

// hold takes bytes of memory and touches every page.
func hold(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	b := make([]byte, n)
	for i := 0; i < n; i += 4096 {
		b[i] = 1
	}
	runtime.KeepAlive(b)
	tried("hold", nil)
	return nil
}

// threads shows the kernel's view of every thread of this process.
func threads([]string) error {
	var up sync.WaitGroup
	for range 4 {
		up.Add(1)
		go func() {
			runtime.LockOSThread()
			up.Done()
			select {}
		}()
	}
	up.Wait()
	all, err := filepath.Glob("/proc/self/task/*/status")
	for _, file := range all {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		fmt.Printf("thread\n%s", b)
	}
	return err
}

// dial connects to an address: dial NETWORK ADDRESS.
func dial(args []string) error {
	c, err := net.DialTimeout(args[0], args[1], 5*time.Second)
	if err == nil {
		c.Close()
	}
	tried("dial", err)
	return nil
}

// loopback listens, and a second process of this binary connects.
func loopback([]string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	path, err := os.Executable()
	if err != nil {
		return err
	}
	other := exec.Command(path, "-as", "dial", "tcp", l.Addr().String())
	other.Stdout, other.Stderr = os.Stdout, os.Stderr
	if err := other.Start(); err != nil {
		return err
	}
	c, err := l.Accept()
	if err == nil {
		_, err = io.ReadAll(c)
	}
	tried("accept", err)
	return other.Wait()
}

func userNamespace([]string) error {
	cmd := exec.Command("/proc/self/exe", "-as", "burn", "0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	tried("clone", cmd.Run())
	runtime.LockOSThread()
	tried("unshare", unix.Unshare(unix.CLONE_NEWNET))
	return nil
}

// mount changes the view in every way that needs no file system but tmpfs.
func mount(args []string) error {
	dir := args[0]
	tried("tmpfs", unix.Mount("none", dir, "tmpfs", 0, ""))
	tried("bind", unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	tried("umount", unix.Unmount(dir, unix.MNT_DETACH))
	_, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	tried("open_tree", err)
	_, err = unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	tried("fsopen", err)
	return nil
}

// setuid makes programs in dir that run as whoever owns them, in every way there
// is to give a file its mode.
func setuid(args []string) error {
	const mode = unix.S_ISUID | unix.S_ISGID | 0o755
	if err := os.Chdir(args[0]); err != nil {
		return err
	}
	created := func(name string, fd int, err error) {
		unix.Close(fd)
		tried(name, err)
	}
	plain := func(name string) int {
		fd, err := unix.Open(name, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o755)
		if err != nil {
			fmt.Println(name, err)
		}
		return fd
	}
	unix.Close(plain("chmod"))
	tried("chmod", unix.Chmod("chmod", mode))
	tried("fchmod", unix.Fchmod(plain("fchmod"), mode))
	unix.Close(plain("fchmodat"))
	tried("fchmodat", unix.Fchmodat(unix.AT_FDCWD, "fchmodat", mode, 0))
	unix.Close(plain("fchmodat2"))
	tried("fchmodat2", unix.Fchmodat(unix.AT_FDCWD, "fchmodat2", mode, unix.AT_SYMLINK_NOFOLLOW))
	path := []byte("open\x00creat\x00")
	fd, _, e := unix.Syscall(unix.SYS_OPEN, uintptr(unsafe.Pointer(&path[0])), unix.O_CREAT|unix.O_WRONLY, mode)
	created("open", int(fd), errno(e))
	fd, _, e = unix.Syscall(unix.SYS_CREAT, uintptr(unsafe.Pointer(&path[5])), mode, 0)
	created("creat", int(fd), errno(e))
	at, err := unix.Openat(unix.AT_FDCWD, "openat", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, mode)
	created("openat", at, err)
	at, err = unix.Openat2(unix.AT_FDCWD, "openat2", &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC, Mode: mode})
	created("openat2", at, err)
	at, err = unix.Open(".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, mode)
	if err == nil {
		err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", at), unix.AT_FDCWD, "tmpfile", unix.AT_SYMLINK_FOLLOW)
	}
	created("tmpfile", at, err)
	tried("mknod", unix.Mknod("mknod", unix.S_IFREG|mode, 0))
	tried("mknodat", unix.Mknodat(unix.AT_FDCWD, "mknodat", unix.S_IFREG|mode, 0))
	return nil
}

// trace takes hold of a child of its own and reads its memory.
func trace([]string) error {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		return err
	}
	defer child.Wait()
	defer child.Process.Kill()
	runtime.LockOSThread()
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(child.Process.Pid), 0, 0, 0, 0)
	tried("ptrace", errno(e))
	b := make([]byte, 1)
	local := []unix.Iovec{{Base: &b[0]}}
	_, err := unix.ProcessVMReadv(child.Process.Pid, local, []unix.RemoteIovec{{}}, 0)
	tried("process_vm_readv", err)
	return nil
}

// proc opens what /proc tells of a process: proc PID.
func proc(args []string) error {
	dir := filepath.Join("/proc", args[0])
	_, err := os.Readlink(filepath.Join(dir, "exe"))
	tried("exe", err)
	_, err = os.ReadDir(filepath.Join(dir, "fd"))
	tried("fd", err)
	for _, name := range []string{"environ", "maps"} {
		_, err = os.ReadFile(filepath.Join(dir, name))
		tried(name, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "mem"), os.O_RDWR, 0)
	f.Close()
	tried("mem", err)
	_, err = os.Readlink(filepath.Join(dir, "root"))
	tried("root", err)
	return nil
}

// sysctl opens every kernel setting for writing and names those that it could.
func sysctl([]string) error {
	seen := 0
	err := filepath.WalkDir("/proc/sys", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil
		}
		seen++
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			f.Close()
			fmt.Println("writable", path)
		}
		return nil
	})
	fmt.Println("seen", seen)
	return err
}
