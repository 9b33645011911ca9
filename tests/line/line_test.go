// Package line_test drives the whole line from outside: the programs of bin, an
// MCP client that is not of the SDK we serve with, real compilers and runtimes in
// the sandbox, and what a host sees of it all. It knows the promises, not the
// code: nothing of ours is imported.
//
// An attack is tried twice, outside where it must succeed and inside where it
// must not. What is tried is this test binary itself in the role of a probe,
// shown to a sandbox by --mount. Where a process must be gone there is no event
// to wait for, so /proc is looked at until it is.
package line_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"codespace/tests/need"
)

// soon bounds what has to happen at all, on a machine that may be busy.
const soon = 30 * time.Second

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "-as" {
		act(os.Args[2], os.Args[3:])
		return
	}
	heedSignals()
	os.Exit(withState(m.Run))
}

// heedSignals lets what is started here heed the signals that whoever runs the
// tests under nohup has ignored: what is ignored is inherited (execve(2)), what is
// handled is not.
func heedSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// withState keeps the caches and locks of these tests out of the user's own.
func withState(run func() int) int {
	dir, err := os.MkdirTemp("", "line-state-")
	if err == nil {
		err = os.Setenv("XDG_STATE_HOME", dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot make a state directory:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	return run()
}

// workspace makes a directory of this user's.
func workspace(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ws")
	must(t, os.Mkdir(dir, 0o755))
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write puts files into dir, making the directories between.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
}

func contents(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

// absent reports whether nothing has that name.
func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR)
}

func lstat(t testing.TB, path string) *syscall.Stat_t {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	return info.Sys().(*syscall.Stat_t) // always so on Linux
}

// sandboxPath is where a sandbox looks for programs, all of it in its view.
const sandboxPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin"

// inside needs a program that a sandbox sees, which one on this user's PATH may
// not be: the feature has its name.
func inside(t testing.TB, name string) string {
	t.Helper()
	for dir := range strings.SplitSeq(sandboxPath, ":") {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found
		}
	}
	need.Feature(t, name, false, "no such program where a sandbox looks for it")
	return ""
}

var markers atomic.Int64

// marker is an argument of sleep that no other process of this host has.
func marker() string { return fmt.Sprintf("300.%d%03d", os.Getpid(), markers.Add(1)) }

// sleepers are the processes of this host that are a sleep of that marker.
func sleepers(t testing.TB, marker string) []string {
	t.Helper()
	return processes(t, "sleep", marker)
}

// processes are those of this host that have that argv. A zombie has none.
func processes(t testing.TB, argv ...string) []string {
	t.Helper()
	want := strings.Join(argv, "\x00") + "\x00"
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	var found []string
	for _, file := range all {
		if b, err := os.ReadFile(file); err == nil && string(b) == want {
			found = append(found, filepath.Base(filepath.Dir(file)))
		}
	}
	return found
}

// eventually waits for what no event tells of.
func eventually(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// appears and gone watch the sleep of a marker.
func appears(t testing.TB, marker string) {
	t.Helper()
	eventually(t, soon, "sleep "+marker+" runs", func() bool { return len(sleepers(t, marker)) > 0 })
}

func gone(t testing.TB, within time.Duration, marker string) {
	t.Helper()
	eventually(t, within, "sleep "+marker+" is gone", func() bool { return len(sleepers(t, marker)) == 0 })
}
