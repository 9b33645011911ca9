package cell_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codespace/helper/cell"
	"codespace/sandbox"
	"codespace/sandbox/message"

	"golang.org/x/sys/unix"
)

// The whole of it under the sanitizers: commands short and long, started and not,
// signals, orphans, malformed messages, and every way a cell ends.
func TestWholeUnderSanitizers(t *testing.T) {
	binary := whole(t, "testdata/main.c")
	refusals(t, binary)
	r := newRig(t, binary)
	for _, long := range []bool{false, true} {
		b := r.born(writable)
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
	r.onTerminal()
	r.signalled()
	r.malformed()
	b := r.born(writable) // never launched
	b.Close()
	b.gone()
	b = r.born(writable)
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
		b := r.born(writable)
		m := &message.Message{Kind: message.KindLaunch}
		m.String(message.TagArg, argv0).String(message.TagEnv, "PATH=::/usr/bin:"+strings.Repeat("y", 5000)+":").String(message.TagCwd, "/")
		b.starts(m, false).Close()
		if f := b.next(); f.Kind != message.KindFailed || f.Text(message.TagReason) != reason {
			r.t.Errorf("%.20q: %d %q", argv0, f.Kind, f.Text(message.TagReason))
		}
		b.gone()
	}
}

// onTerminal runs a command on a terminal of its own, short and long.
func (r rig) onTerminal() {
	for _, more := range [][]string{nil, make([]string, 9000)} {
		b := r.born(sandbox.Wish{Terminal: true})
		m := shell("test -t 0 && test -t 2 && tty && stty size", more...)
		content, files := m.Encode(), []*os.File(nil)
		if more != nil {
			body, err := message.Sealed("launch", content)
			if err != nil {
				r.t.Fatal(err)
			}
			defer body.Close()
			content, files = new(message.Message{Kind: message.KindLaunch}).Uint64(message.TagBody, uint64(len(content))).Encode(), []*os.File{body}
		}
		if err := b.Send(content, files...); err != nil {
			r.t.Fatal(err)
		}
		started, exited := b.next(), b.next()
		said := make([]byte, 100)
		n, _ := b.master.Read(said)
		if started.Kind != message.KindStarted || exited.Number(message.TagStatus) != 0 || !strings.HasPrefix(string(said[:n]), "/dev/pts/") {
			r.t.Errorf("%+v, %+v, %q", started, exited, said[:n])
		}
		b.gone()
	}
}

// signalled shows that read access is read-only, that a signal passes and that
// SIGKILL for the tree is no end of PID 1.
func (r rig) signalled() {
	b := r.born(sandbox.Wish{})
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
		b := r.born(writable)
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
		b := r.born(writable)
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
