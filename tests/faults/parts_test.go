package faults_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codespace/tests/need"

	"golang.org/x/sys/unix"
)

// exitLimit is within what time a part that is started wrongly must be gone.
const exitLimit = 10 * time.Second

// part is the command line of a program that codespace starts, started by hand.
func part(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(need.Binary(t, name), args...)
	cmd.Env = []string{}
	return cmd
}

// wantRefused wants a part to exit with a status of failure and to leave nothing.
func wantRefused(t testing.TB, cmd *exec.Cmd) *program {
	t.Helper()
	before := mountsByID()
	p := start(t, cmd)
	if code := p.wait(t, exitLimit); code == 0 || code > 127 {
		t.Errorf("exit %d; stderr: %s", code, &p.stderr)
	}
	wantNobodyBut(t)
	if left := (footprint{mounts: before}).left(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if strings.Contains(p.stderr.String(), "goroutine ") {
		t.Errorf("it panicked: %s", &p.stderr)
	}
	return p
}

// handmade is a run directory and the settings of a runner in it.
type handmade struct {
	place
	instance string
}

func newHandmade(t testing.TB) handmade {
	h := handmade{place: newPlace(t)}
	h.instance = filepath.Join(t.TempDir(), "0123456789ab")
	h.again(t)
	return h
}

// again makes the run directory anew: a runner removes it at its end.
func (h handmade) again(t testing.TB) {
	t.Helper()
	if err := os.RemoveAll(h.instance); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(h.instance, 0o711); err != nil {
		t.Fatal(err)
	}
	touch(t, filepath.Join(h.instance, "lock"))
	touch(t, filepath.Join(h.instance, "groups"))
}

// settings is what codespace writes to a runner's standard input.
func (h handmade) settings(change map[string]any) string {
	s := map[string]any{"instance": h.instance, "workspace": h.workspace, "gateway": os.Getpid(),
		"environ": map[string]string{"XDG_STATE_HOME": h.state}}
	for k, v := range change {
		s[k] = v
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // plain values always marshal
	}
	return string(b)
}

// serving is a runner with right settings whose listening socket is at the path.
func (h handmade) serving(t testing.TB) (cmd *exec.Cmd, path string) {
	t.Helper()
	path = filepath.Join(h.instance, "socket")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return h.on(t, f), path
}

// on is a runner with right settings and a lifeline on a socket, right or wrong.
func (h handmade) on(t testing.TB, socket *os.File) *exec.Cmd {
	t.Helper()
	lifeline, ours, err := os.Pipe() // hangs up when the gateway is gone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		lifeline.Close()
		ours.Close()
	})
	cmd := part(t, "codespace-runner", "serve")
	cmd.Stdin, cmd.ExtraFiles = strings.NewReader(h.settings(nil)), []*os.File{socket, lifeline}
	return cmd
}

func TestRunnerRefusesWrongStart(t *testing.T) {
	h := newHandmade(t)
	other := t.TempDir()
	for name, stdin := range map[string]string{
		"no settings":           "",
		"garbage":               "\x00\xff{{{",
		"half of the settings":  h.settings(nil)[:20],
		"a list":                "[1,2]",
		"no instance":           h.settings(map[string]any{"instance": ""}),
		"an absent instance":    h.settings(map[string]any{"instance": filepath.Join(other, "none")}),
		"a foreign directory":   h.settings(map[string]any{"instance": other}),
		"an absent workspace":   h.settings(map[string]any{"workspace": filepath.Join(other, "none")}),
		"the root as workspace": h.settings(map[string]any{"workspace": "/"}),
		"an absent file":        h.settings(map[string]any{"config": filepath.Join(other, "none")}),
		"no descriptor":         h.settings(nil),
	} {
		t.Run(name, func(t *testing.T) {
			cmd := part(t, "codespace-runner", "serve")
			cmd.Stdin = strings.NewReader(stdin)
			wantRefused(t, cmd)
		})
	}
	for _, args := range [][]string{{}, {"serve", "more"}, {"--help"}} {
		wantRefused(t, part(t, "codespace-runner", args...))
	}
	t.Run("an instance that is being swept", func(t *testing.T) {
		h.again(t)
		fd, err := unix.Open(filepath.Join(h.instance, "lock"), unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		cmd := part(t, "codespace-runner", "serve")
		cmd.Stdin = strings.NewReader(h.settings(nil))
		wantRefused(t, cmd)
	})
}

func TestRunnerRefusesWrongDescriptor(t *testing.T) {
	h := newHandmade(t)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*os.File{"a device": null, "a connected socket": os.NewFile(uintptr(pair[0]), "pair")} {
		t.Run(name, func(t *testing.T) {
			h.again(t)
			wantRefused(t, h.on(t, f))
		})
		f.Close()
	}
	unix.Close(pair[1])
}
