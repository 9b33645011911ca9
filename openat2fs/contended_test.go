package openat2fs_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"codespace/openat2fs"
	"codespace/tests/need"

	"golang.org/x/sys/unix"
)

// onFilteredThread runs do on a thread for which openat2 always fails with errno:
// a thread of its own, which ends with it.
func onFilteredThread(t *testing.T, errno unix.Errno, do func()) {
	done := make(chan error, 1)
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the filter goes with the thread
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = filter(errno)
		}
		if err == nil {
			do()
		}
		done <- err
	}()
	err := <-done
	need.Feature(t, "seccomp", err == nil, "no filter of system calls can be set")
}

// filter answers openat2 with errno and lets everything else through (seccomp(2)).
func filter(errno unix.Errno) error {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_OPENAT2, Jt: 0, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&p)), 0, 0)
}

func (g *ground) everyCall(name string) map[string]func() error {
	all, ctx := g.everyWay(name), context.Background()
	all["stat"] = func() error { _, err := g.root.Stat(ctx, path(g.t, name)); return err }
	all["find"] = func() error { _, err := g.root.Find(ctx, openat2fs.Query{}); return err }
	all["opendir"] = func() error { _, err := g.root.OpenDir(ctx, path(g.t, name)); return err }
	all["makedirs"] = func() error { _, _, err := g.root.MakeDirs(ctx, path(g.t, name), 0o755); return err }
	return all
}

// TestStormOfEAGAIN: a lookup that is never sure ends, as PATH_CONTENDED.
func TestStormOfEAGAIN(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	g.write("f", "x")
	onFilteredThread(t, unix.EAGAIN, func() {
		for _, call := range g.everyCall("f") {
			if e := g.refused(openat2fs.PathContended, call); !e.Retryable() || !errors.Is(e, unix.EAGAIN) {
				t.Errorf("%v", e)
			}
		}
	})
}

// TestWithoutOpenat2: there is no other way in, and none that goes on.
func TestWithoutOpenat2(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	g.write("f", "x")
	want := identity(t, g.dir)
	onFilteredThread(t, unix.ENOSYS, func() {
		calls := g.everyCall("f")
		calls["open"] = func() error { _, err := openat2fs.Open(g.dir, want, openat2fs.Limits{}); return err }
		for name, call := range calls {
			if e := g.refused(openat2fs.FileOperationFailed, call); !errors.Is(e, unix.ENOSYS) {
				t.Errorf("%s: %v", name, e)
			}
		}
	})
}

// TestLease: whoever holds a lease on a file makes a plain open wait, for 45
// seconds by default (fcntl(2), lease-break-time).
func TestLease(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	g.write("f", "x")
	fd, err := unix.Open(g.at("f"), unix.O_RDWR|unix.O_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
	need.Feature(t, "leases", err == nil, "the file system of the tests has none")
	for _, call := range g.everyWay("f") {
		g.refused(openat2fs.PathContended, call)
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	must(t, err)
	if _, err := g.read("f", openat2fs.Range{}); err != nil {
		t.Error(err)
	}
}

// TestTurns: more callers than turns all get theirs, and a Root closes behind
// those that run.
func TestTurns(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	g.write("f", "x")
	const callers = 200
	answers := make(chan error, callers)
	for range callers {
		go func() { _, err := g.read("f", openat2fs.Range{}); answers <- err }()
	}
	for range callers {
		must(t, <-answers)
	}
	for range callers {
		go func() { _, err := g.read("f", openat2fs.Range{}); answers <- err }()
	}
	must(t, g.root.Close())
	for range callers {
		if err := <-answers; err != nil && !errors.Is(err, unix.EBADF) {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := g.root.Stat(ctx, openat2fs.Path{}); !errors.Is(err, unix.EBADF) {
		t.Errorf("closed: %v", err)
	}
}
