// Package cell is the inside of a sandbox: the factory, PID 1 of the sandbox,
// and the cells it makes, one per command, each with its own PID 1. Both are
// the C beside this file, run from a constructor, so that no Go runtime starts
// for a command; this side speaks to them from the helper.
//
// A cell is complete before any argv is known: own pid, mount, ipc, uts and
// cgroup namespaces, its limits, an ordinary uid in a last user namespace, no
// capabilities, no_new_privs and both seccomp programs. A step that fails ends
// it. setup.c is the list.
package cell

/*
#cgo CFLAGS: -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror
#include "cell.h"
extern int helper_namespace_errno;
extern const char *helper_namespace_step;
extern int helper_in_user_namespace;
static int parse_launch(const void *p, size_t n) { struct launch l; int r = launch_parse(&l, p, n); if (!r) { r = (int)l.argc + 1; launch_free(&l); } return r; }
static int parse_config(const void *p, size_t n) { struct config c; return config_parse(&c, p, n); }
*/
import "C"

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"codespace/sandbox"

	"golang.org/x/sys/unix"
)

// NamespaceFailure is why this helper could not enter namespaces of its own
// before its Go runtime started, nil if it could.
func NamespaceFailure() *sandbox.Failure {
	if C.helper_namespace_errno == 0 {
		return nil
	}
	return &sandbox.Failure{Step: C.GoString(C.helper_namespace_step), Errno: int(C.helper_namespace_errno)}
}

// InUserNamespace reports whether this helper made itself a user namespace
// because it was not started as the host's root.
func InUserNamespace() bool { return C.helper_in_user_namespace != 0 }

// Config is what every cell of one sandbox is made from.
type Config struct {
	Workspace string
	Programs  [2][]byte // seccomp, in load order
	Limits    map[int]uint64
	Processes uint64 // RLIMIT_NPROC, PID 1 included
	ShmBytes  uint64
}

// hidden and fixed are the parts of /proc that say or change something of the
// host (moby's list of masked and read-only paths).
var (
	hidden = []string{"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kallsyms", "/proc/kcore", "/proc/keys", "/proc/key-users",
		"/proc/kmsg", "/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
		"/proc/softirqs", "/proc/sysvipc", "/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo", "/proc/slabinfo", "/proc/swaps", "/proc/modules"}
	fixed = []string{"/proc/bus", "/proc/driver", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/proc/tty"}
)

func (c Config) message() []byte {
	m := sandbox.Message{Kind: sandbox.KindConfig}
	m.String(sandbox.TagWorkspace, c.Workspace)
	for _, p := range fixed {
		m.String(sandbox.TagReadonly, p)
	}
	for _, p := range hidden {
		m.String(sandbox.TagMask, p)
	}
	for _, p := range c.Programs {
		m.Bytes(sandbox.TagProgram, p)
	}
	for r, v := range c.Limits {
		m.Uint64(sandbox.TagRlimit, uint64(r), v)
	}
	m.Uint64(sandbox.TagProcesses, c.Processes)
	m.Uint64(sandbox.TagShm, c.ShmBytes)
	return m.Encode()
}

// Factory is the helper's side of one sandbox's factory.
type Factory struct {
	mu sync.Mutex // one request at a time
	ch *sandbox.Channel
}

// NewFactory takes over the socket of a factory and configures it.
func NewFactory(f *os.File, c Config) (*Factory, error) {
	ch, err := sandbox.NewChannel(f)
	if err != nil {
		return nil, sandbox.Fail("factory", 0, err)
	}
	body := c.message()
	file, err := sandbox.SealedFile("cell configuration", body)
	if err != nil {
		ch.Close()
		return nil, sandbox.Fail("factory", 1, err)
	}
	defer file.Close()
	m := sandbox.Message{Kind: sandbox.KindConfig}
	m.Uint64(sandbox.TagBody, uint64(len(body)))
	err = ch.Send(m.Encode(), file)
	if err == nil {
		_, err = expect(ch, sandbox.KindReady, 0)
	}
	if err != nil {
		ch.Close()
		return nil, sandbox.Fail("factory", 2, err)
	}
	return &Factory{ch: ch}, nil
}

// Close ends the factory, the sandbox and every cell.
func (f *Factory) Close() error { return f.ch.Close() }

// Clone makes a cell. It returns the cell's socket and the pidfd of its PID 1;
// the cell is waiting for Placed.
func (f *Factory) Clone(writable bool) (socket, pidfd *os.File, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := sandbox.Message{Kind: sandbox.KindCell}
	w := uint32(0)
	if writable {
		w = 1
	}
	if err := f.ch.Send(m.Uint32(sandbox.TagWritable, w).Encode()); err != nil {
		return nil, nil, sandbox.Fail("factory", 3, err)
	}
	files, err := expect(f.ch, sandbox.KindCloned, 2)
	if err != nil {
		return nil, nil, sandbox.Fail("factory", 4, err)
	}
	return files[0], files[1], nil
}

// Placed tells a cell that it is in its cgroup and waits until it is locked
// down. A *sandbox.Failure names the step that failed.
func Placed(socket *os.File) error {
	m := sandbox.Message{Kind: sandbox.KindPlaced}
	if err := unix.Sendto(int(socket.Fd()), m.Encode(), unix.MSG_NOSIGNAL, nil); err != nil {
		return firstFailure(socket, err)
	}
	return awaitReady(socket)
}

func awaitReady(socket *os.File) error {
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(int(socket.Fd()), buf, 0)
	for err == unix.EINTR {
		n, _, err = unix.Recvfrom(int(socket.Fd()), buf, 0)
	}
	if err != nil {
		return sandbox.Fail("cell", 0, err)
	}
	if n == 0 {
		return &sandbox.Failure{Step: "cell", Index: 1, Reason: "it ended before it was ready"}
	}
	return check(buf[:n], sandbox.KindReady)
}

// firstFailure prefers what the cell said before it ended over the error of
// writing to an ended cell.
func firstFailure(socket *os.File, sent error) error {
	if err := awaitReady(socket); err != nil {
		return err
	}
	return sandbox.Fail("cell", 2, sent)
}

func expect(ch *sandbox.Channel, k sandbox.Kind, n int) ([]*os.File, error) {
	b, files, err := ch.Receive(make([]byte, 4096))
	if err == nil {
		err = check(b, k)
	}
	if err == nil && len(files) != n {
		err = fmt.Errorf("%d descriptors came with a message, want %d", len(files), n)
	}
	if err != nil {
		sandbox.CloseAll(files)
		return nil, err
	}
	return files, nil
}

func check(b []byte, want sandbox.Kind) error {
	m, err := sandbox.Decode(b)
	if err != nil {
		return err
	}
	if m.Kind == sandbox.KindFailed {
		return m.Failure()
	}
	if m.Kind != want {
		return fmt.Errorf("message of kind %d, want %d", m.Kind, want)
	}
	return nil
}

// ParseLaunch runs the C parser of a launch over b and returns how many
// arguments it found. It exists so that the parser that faces the runner can be
// fuzzed from Go.
func ParseLaunch(b []byte) (argc int, ok bool) {
	if len(b) == 0 {
		return 0, false
	}
	r := int(C.parse_launch(unsafe.Pointer(&b[0]), C.size_t(len(b))))
	return r - 1, r > 0
}

// ParseConfig likewise runs the C parser of a configuration.
func ParseConfig(b []byte) bool {
	return len(b) > 0 && C.parse_config(unsafe.Pointer(&b[0]), C.size_t(len(b))) == 0
}
