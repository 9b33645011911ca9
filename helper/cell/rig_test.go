package cell_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	t      *testing.T
	pid    int
	pidfd  *os.File
	master *os.File // of its terminal, if it has one
}

var writable = sandbox.Wish{Writable: true}

func (r rig) born(w sandbox.Wish) born {
	r.t.Helper()
	n, err := r.Clone(w)
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
	b := born{ch, r.t, pid, n.PIDFD, n.Master}
	r.t.Cleanup(func() { ch.Close(); n.PIDFD.Close(); n.Master.Close() })
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
