package cell_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codespace/helper/cell"
	"codespace/sandbox"
	"codespace/sandbox/message"
	"codespace/tests/need"

	"golang.org/x/sys/unix"
)

// rig is the C side whole, built with sanitizers and run for real: a factory in
// namespaces of its own on the host's own root, and cells it makes.
type rig struct {
	*cell.Factory
	t         *testing.T
	workspace string
	logs      string
	hangup    *os.File // the gateway's end of the lifeline
	ended     chan error
}

// allowAll is a seccomp program of one instruction: the real ones are not the
// subject here and refuse what a sanitizer does.
var allowAll = []byte{0x06, 0, 0, 0, 0, 0, 0xff, 0x7f}

func (r rig) config() cell.Config {
	r.t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(r.workspace, &st); err != nil {
		r.t.Fatal(err)
	}
	root := sandbox.Root{Path: r.workspace, Device: st.Dev, Inode: st.Ino}
	return cell.Config{Workspace: r.workspace, Root: root, Programs: [2][]byte{allowAll, allowAll}, OpenFiles: 64, Processes: 50, ShmBytes: 1 << 20}
}

// whole builds it.
func whole(t *testing.T, files ...string) string {
	t.Helper()
	need.UserNamespaces(t)
	return sanitized(t, append(files, "message.c", "setup.c", "init.c", "factory.c")...)
}

func newRig(t *testing.T, binary string) rig {
	t.Helper()
	r, ours := unconfigured(t, binary)
	var err error
	if r.Factory, err = cell.NewFactory(ours, r.config()); err != nil {
		t.Fatalf("%v\n%s", err, r.findings())
	}
	return r
}

// unconfigured starts a factory, which waits for its configuration on the socket.
func unconfigured(t *testing.T, binary string) (rig, *os.File) {
	t.Helper()
	unshare := need.Command(t, "unshare")
	ours, theirs, err := message.Pair()
	if err != nil {
		t.Fatal(err)
	}
	lifeline, hangup, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer lifeline.Close()
	defer theirs.Close()
	r := rig{t: t, workspace: t.TempDir(), logs: t.TempDir(), hangup: hangup, ended: make(chan error, 1)}
	// A workspace is a mount of its own, and no mount of a cell's is the host's.
	script := `mount --bind "$1" "$1" && exec "$0" factory`
	cmd := exec.Command(unshare, "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "--ipc", "--uts", "--net", "sh", "-c", script, binary, r.workspace)
	cmd.Env = append(os.Environ(), "ASAN_OPTIONS=log_path="+r.logs+"/found", "UBSAN_OPTIONS=print_stacktrace=1:log_path="+r.logs+"/found")
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{theirs, lifeline, lifeline} // helper, image, lifeline
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- cmd.Wait() }()
	t.Cleanup(func() { hangup.Close() })
	return r, ours
}

// end waits for the end of the factory.
func (r rig) end() {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(20 * time.Second):
		r.t.Error("the factory goes on")
	}
	if found := r.findings(); found != "" {
		r.t.Error(found)
	}
}

// findings are what the sanitizers wrote.
func (r rig) findings() string {
	r.t.Helper()
	all := ""
	files, _ := filepath.Glob(r.logs + "/*")
	for _, name := range files {
		b, err := os.ReadFile(name)
		all += fmt.Sprintf("%s: %v\n%s\n", name, err, b)
	}
	return all
}

// born is a cell that is locked down, spoken to as the runner does.
type born struct {
	*message.Channel
	t     *testing.T
	pid   int
	pidfd *os.File
}

func (r rig) born(writable bool) born {
	r.t.Helper()
	n, err := r.Clone(sandbox.Wish{Writable: writable})
	if err != nil {
		r.t.Fatal(err)
	}
	pid, err := n.PID()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := n.Finish(); err != nil {
		r.t.Fatalf("%v\n%s", err, r.findings())
	}
	plan := sandbox.Plan{Identity: sandbox.Identity{HostUID: os.Geteuid()}}
	if _, err := plan.Inspect(pid, sandbox.Leaf{}); err != nil {
		r.t.Error(err)
	}
	ch, err := message.New(n.Socket)
	if err != nil {
		r.t.Fatal(err)
	}
	b := born{ch, r.t, pid, n.PIDFD}
	r.t.Cleanup(func() { ch.Close(); n.PIDFD.Close() })
	return b
}

// next is the next message of the cell, kind 0 at its end.
func (b born) next() message.Message {
	got, files, err := b.Receive(make([]byte, 4096))
	message.CloseAll(files)
	if err != nil {
		return message.Message{}
	}
	m, err := message.Decode(got)
	if err != nil {
		b.t.Errorf("%x: %v", got, err)
	}
	return m
}

// gone waits for the end of PID 1.
func (b born) gone() {
	b.t.Helper()
	p := []unix.PollFd{{Fd: int32(b.pidfd.Fd()), Events: unix.POLLIN}}
	if n, err := unix.Poll(p, 20_000); n != 1 {
		b.t.Errorf("the cell goes on: %v", err)
	}
}

// starts sends a launch, with its body in a memfd or not, and returns the
// command's output.
func (b born) starts(m *message.Message, long bool) *os.File {
	b.t.Helper()
	in, err := os.Open(os.DevNull)
	if err != nil {
		b.t.Fatal(err)
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	files := []*os.File{in, outEnd, outEnd}
	content := m.Encode()
	if long {
		body, err := message.Sealed("launch", content)
		if err != nil {
			b.t.Fatal(err)
		}
		defer body.Close()
		content = new(message.Message{Kind: message.KindLaunch}).Uint64(message.TagBody, uint64(len(content))).Encode()
		files = append(files, body)
	}
	if err := b.Send(content, files...); err != nil {
		b.t.Fatal(err)
	}
	in.Close()
	outEnd.Close()
	return out
}

func shell(script string, more ...string) *message.Message {
	m := &message.Message{Kind: message.KindLaunch}
	for _, a := range append([]string{"sh", "-c", script}, more...) {
		m.String(message.TagArg, a)
	}
	return m.String(message.TagEnv, "PATH=/absent:/usr/bin:/bin").String(message.TagCwd, "/tmp")
}

// The whole of it under the sanitizers: commands short and long, started and not,
// signals, orphans, malformed messages, and every way a cell ends.
func TestWholeUnderSanitizers(t *testing.T) {
	binary := whole(t, "testdata/main.c")
	refusals(t, binary)
	r := newRig(t, binary)
	for _, long := range []bool{false, true} {
		b := r.born(true)
		out := b.starts(shell("id -u; echo $$ $#; (exec sleep 0.01 &); exit 7", make([]string, 5000)...), long)
		said, _ := io.ReadAll(out)
		if m := b.next(); m.Kind != message.KindStarted {
			t.Fatalf("%+v\n%s", m, r.findings())
		}
		exited, empty := b.next(), b.next()
		if exited.Kind != message.KindExited || exited.Number(message.TagStatus) != 7<<8 || empty.Kind != message.KindEmpty || string(said) != "1000\n2 4999\n" {
			t.Errorf("%+v, %+v, %q", exited, empty, said)
		}
		b.gone()
	}
	r.unstarted()
	r.signalled()
	r.malformed()
	b := r.born(true) // never launched
	b.Close()
	b.gone()
	b = r.born(true)
	b.starts(shell("sleep 1000"), false)
	b.next()
	r.hangup.Close() // the gateway is gone
	b.gone()
	r.end()
}

// refusals are configurations and requests that end a factory.
func refusals(t *testing.T, binary string) {
	var f *sandbox.Failure
	for _, long := range []int{0, 12, maxProgram + 8} {
		r, ours := unconfigured(t, binary)
		bad := r.config()
		bad.Programs[1] = make([]byte, long)
		if _, err := cell.NewFactory(ours, bad); !errors.As(err, &f) || f.Step != "factory configuration" || f.Errno != int(unix.EINVAL) {
			t.Errorf("a program of %d bytes: %v", long, err)
		}
		r.end()
	}
	good := new(message.Message{Kind: message.KindConfig}).Uint64(message.TagBody, 100).Encode()
	for _, content := range [][]byte{[]byte("garbage"), goodConfig(0).Encode(), good, bytes.Repeat([]byte("x"), 5000)} {
		r, ours := unconfigured(t, binary)
		if _, err := ours.Write(content); err != nil {
			t.Fatal(err)
		}
		r.end()
		ours.Close()
	}
	r := newRig(t, binary)
	r.Close()
	r.end()
	if _, err := r.Clone(sandbox.Wish{Writable: true}); !errors.As(err, &f) || f.Step != "factory" {
		t.Errorf("a cell of nobody: %v", err)
	}
}

// unstarted are commands that cannot be started.
func (r rig) unstarted() {
	file := filepath.Join(r.t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("text"), 0o644); err != nil {
		r.t.Fatal(err)
	}
	script := filepath.Join(filepath.Dir(file), "script")
	if err := os.WriteFile(script, []byte("#!/absent\n"), 0o755); err != nil {
		r.t.Fatal(err)
	}
	for argv0, reason := range map[string]string{
		"absent": "not found", "/absent": "not found", "": "not found", "/tmp": "is a directory", file: "not executable",
		script: "missing interpreter", strings.Repeat("x", 5000): "not found", "/" + strings.Repeat("x", 5000): "failed",
	} {
		b := r.born(true)
		m := &message.Message{Kind: message.KindLaunch}
		m.String(message.TagArg, argv0).String(message.TagEnv, "PATH=::/usr/bin:"+strings.Repeat("y", 5000)+":").String(message.TagCwd, "/")
		b.starts(m, false).Close()
		if f := b.next(); f.Kind != message.KindFailed || f.Text(message.TagReason) != reason {
			r.t.Errorf("%.20q: %d %q", argv0, f.Kind, f.Text(message.TagReason))
		}
		b.gone()
	}
}

// signalled shows that read access is read-only, that a signal passes and that
// SIGKILL for the tree is no end of PID 1.
func (r rig) signalled() {
	b := r.born(false)
	out := b.starts(shell("trap 'exit 9' TERM; echo x >$0 || echo refused; sleep 1000 & wait", r.workspace+"/x"), true)
	lines := bufio.NewReader(out)
	said, _ := lines.ReadString('\n')
	if refused, _ := lines.ReadString('\n'); refused != "refused\n" || !strings.Contains(said, "Read-only file system") {
		r.t.Errorf("read access said %q, %q", said, refused)
	}
	signal := func(n uint32, tree uint32) {
		b.Send(new(message.Message{Kind: message.KindSignal}).Uint32(message.TagSignal, n).Uint32(message.TagTree, tree).Encode())
	}
	b.next()
	signal(uint32(unix.SIGTERM), 0)
	exited := b.next()
	signal(uint32(unix.SIGKILL), 1)
	if empty := b.next(); unix.WaitStatus(exited.Number(message.TagStatus)).ExitStatus() != 9 || empty.Kind != message.KindEmpty {
		r.t.Errorf("%+v, %+v", exited, empty)
	}
	b.gone()
}

// malformed launches and signals end a cell, and nothing else.
func (r rig) malformed() {
	launches := [][]byte{
		[]byte("garbage"), goodLaunch(0).Encode(), put(goodLaunch(1).Encode(), 6, 9), goodLaunch(1).Encode()[:30], bytes.Repeat([]byte("x"), 80_000),
		new(message.Message{Kind: message.KindLaunch}).Uint64(message.TagBody, 100).Encode(),
		new(message.Message{Kind: message.KindSignal}).Uint32(message.TagSignal, 9).Encode(),
	}
	for _, content := range launches {
		b := r.born(true)
		b.Send(content)
		if m := b.next(); m.Kind != message.KindFailed && m.Kind != 0 {
			r.t.Errorf("%.40q: answered %d", content, m.Kind)
		}
		b.gone()
	}
	signals := [][]byte{
		[]byte("garbage"), bytes.Repeat([]byte("x"), 80_000), goodLaunch(1).Encode(),
		new(message.Message{Kind: message.KindSignal}).Encode(),
		new(message.Message{Kind: message.KindSignal}).Uint32(message.TagSignal, 65).Encode(),
		new(message.Message{Kind: message.KindSignal}).Uint32(message.TagSignal, 0xffffffff).Encode(),
		new(message.Message{Kind: message.KindSignal}).Uint64(message.TagSignal, 9).Encode(),
	}
	for _, content := range signals {
		b := r.born(true)
		b.starts(shell("sleep 1000"), false)
		b.next()
		b.Send(content)
		b.gone()
	}
}

// The control: a byte read too many inside a cell that is locked down is seen.
func TestPlantedFindingIsSeen(t *testing.T) {
	r := newRig(t, whole(t, "-DPLANTED", "-Wl,--wrap=cell_init", "testdata/main.c"))
	n, err := r.Clone(sandbox.Wish{Writable: true})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Kill()
	n.Finish()
	one := make([]byte, 1)
	n.Socket.Read(one) // the end
	if found := r.findings(); !strings.Contains(found, "heap-buffer-overflow") {
		t.Errorf("not seen: %s", found)
	}
}
