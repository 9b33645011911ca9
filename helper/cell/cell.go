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
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"codespace/sandbox"
	"codespace/sandbox/message"

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
	Root      sandbox.Root // what must be there
	Programs  [2][]byte    // seccomp, in load order
	OpenFiles uint64
	Processes uint64 // RLIMIT_NPROC, PID 1 included
	ShmBytes  uint64
}

// hidden and fixed are the parts of /proc that say or change something of the
// host: moby's lists and what else everybody could read. What only the host's
// root can open (kmsg, kpagecount, slabinfo, ...) needs no mask: no sandbox is it.
var (
	hidden = []string{"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kallsyms", "/proc/kcore", "/proc/keys", "/proc/key-users",
		"/proc/latency_stats", "/proc/modules", "/proc/sched_debug", "/proc/scsi", "/proc/softirqs", "/proc/swaps", "/proc/timer_list",
		"/proc/timer_stats"}
	fixed = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

func (c Config) rlimits() map[int]uint64 {
	return map[int]uint64{
		unix.RLIMIT_NOFILE:     c.OpenFiles,
		unix.RLIMIT_CORE:       1, // 1 also stops a piped core_pattern, 0 does not (core(5))
		unix.RLIMIT_MEMLOCK:    64 << 10,
		unix.RLIMIT_MSGQUEUE:   64 << 10,
		unix.RLIMIT_SIGPENDING: 4096,
	}
}

func (c Config) message() []byte {
	m := message.Message{Kind: message.KindConfig}
	m.String(message.TagWorkspace, c.Workspace).Uint64(message.TagRoot, c.Root.Device, c.Root.Inode)
	for _, p := range fixed {
		m.String(message.TagReadonly, p)
	}
	for _, p := range hidden {
		m.String(message.TagMask, p)
	}
	for _, p := range c.Programs {
		m.Bytes(message.TagProgram, p)
	}
	for r, v := range c.rlimits() {
		m.Uint64(message.TagRlimit, uint64(r), v)
	}
	m.Uint64(message.TagProcesses, c.Processes)
	m.Uint64(message.TagShm, c.ShmBytes)
	return m.Encode()
}

// Factory is the helper's side of one sandbox's factory.
type Factory struct {
	mu   sync.Mutex // one request at a time, and guards hung
	ch   *message.Channel
	hung error // the answer that did not come: the next could be that one
}

// NewFactory takes over the socket of a factory and configures it.
func NewFactory(f *os.File, c Config) (*Factory, error) {
	ch, err := message.New(f)
	if err != nil {
		return nil, sandbox.Fail("factory", 0, err)
	}
	body := c.message()
	file, err := message.Sealed("cell configuration", body)
	if err != nil {
		ch.Close()
		return nil, sandbox.Fail("factory", 1, err)
	}
	defer file.Close()
	m := message.Message{Kind: message.KindConfig}
	m.Uint64(message.TagBody, uint64(len(body)))
	err = ch.Send(m.Encode(), file)
	if err == nil {
		_, err = expect(ch, message.KindReady, 0)
	}
	if err != nil {
		ch.Close()
		return nil, sandbox.Fail("factory", 2, err)
	}
	return &Factory{ch: ch}, nil
}

// Close ends the factory, the sandbox and every cell.
func (f *Factory) Close() error { return f.ch.Close() }

// answerTimeout bounds each answer of a factory or cell: they take milliseconds.
const answerTimeout = 15 * time.Second

// Newborn is a cloned cell that is not locked down yet.
type Newborn struct {
	Socket *os.File // the cell's own
	PIDFD  *os.File // of its PID 1
	Master *os.File // of its pseudo-terminal, once finished; nil if it has none
}

// Clone makes a cell, which then waits for Finish.
func (f *Factory) Clone(w sandbox.Wish) (*Newborn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hung != nil {
		return nil, sandbox.Fail("factory", 5, f.hung)
	}
	m := message.Message{Kind: message.KindCell}
	m.Uint32(message.TagWritable, number(w.Writable)).Uint32(message.TagTerminal, number(w.Terminal))
	if err := f.ch.Send(m.Encode()); err != nil {
		return nil, sandbox.Fail("factory", 3, err)
	}
	files, err := expect(f.ch, message.KindCloned, 2)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		f.hung = err // its commands may well run: it is not closed here
	}
	if err != nil {
		return nil, sandbox.Fail("factory", 4, err)
	}
	return &Newborn{Socket: files[0], PIDFD: files[1]}, nil
}

// PID is the cell's PID 1 as this pid namespace names it.
func (n *Newborn) PID() (int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", n.PIDFD.Fd()))
	if err != nil {
		return 0, sandbox.Fail("cell pid", 0, err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "Pid:"); ok {
			if pid, err := strconv.Atoi(strings.TrimSpace(v)); err == nil && pid > 0 {
				return pid, nil
			}
		}
	}
	return 0, &sandbox.Failure{Step: "cell pid", Index: 1, Reason: "the cell has ended"}
}

// Finish tells the cell that it is in its cgroup and waits until it is locked
// down. A *sandbox.Failure names the step that failed.
func (n *Newborn) Finish() error {
	m := message.Message{Kind: message.KindPlaced}
	sent := unix.Sendto(int(n.Socket.Fd()), m.Encode(), unix.MSG_NOSIGNAL, nil)
	if err := n.awaitReady(); err != nil || sent == nil {
		return err // what the cell said before it ended tells more than sent
	}
	return sandbox.Fail("cell", 2, sent)
}

// Kill ends a cell that is of no use and waits until it is gone.
func (n *Newborn) Kill() {
	unix.PidfdSendSignal(int(n.PIDFD.Fd()), unix.SIGKILL, nil, 0)
	unix.Poll([]unix.PollFd{{Fd: int32(n.PIDFD.Fd()), Events: unix.POLLIN}}, int(answerTimeout.Milliseconds()))
	message.CloseAll(n.Files())
}

// Files are what a runner gets of the cell.
func (n *Newborn) Files() []*os.File {
	files := []*os.File{n.Socket, n.PIDFD}
	if n.Master != nil {
		files = append(files, n.Master)
	}
	return files
}

func (n *Newborn) awaitReady() error {
	buf, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	limit := unix.NsecToTimeval(answerTimeout.Nanoseconds())
	if err := unix.SetsockoptTimeval(int(n.Socket.Fd()), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return sandbox.Fail("cell", 4, err)
	}
	size, control, _, _, err := unix.Recvmsg(int(n.Socket.Fd()), buf, oob, unix.MSG_CMSG_CLOEXEC)
	for err == unix.EINTR {
		size, control, _, _, err = unix.Recvmsg(int(n.Socket.Fd()), buf, oob, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		return sandbox.Fail("cell", 0, err)
	}
	if size == 0 {
		return &sandbox.Failure{Step: "cell", Index: 1, Reason: "it ended before it was ready"}
	}
	files, err := message.Files(oob[:control])
	if err == nil && len(files) == 1 {
		n.Master = files[0]
	}
	if err != nil {
		return sandbox.Fail("cell", 3, err)
	}
	return check(buf[:size], message.KindReady)
}

func number(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func expect(ch *message.Channel, k message.Kind, n int) ([]*os.File, error) {
	b, files, err := ch.Await(make([]byte, 4096), answerTimeout)
	if err == nil {
		err = check(b, k)
	}
	if err == nil && len(files) != n {
		err = fmt.Errorf("%d descriptors came with a message, want %d", len(files), n)
	}
	if err != nil {
		message.CloseAll(files)
		return nil, err
	}
	return files, nil
}

func check(b []byte, want message.Kind) error {
	m, err := message.Decode(b)
	if err != nil {
		return err
	}
	if m.Kind == message.KindFailed {
		return sandbox.FailureOf(m)
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
