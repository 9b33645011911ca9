package faults_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// promised is within what time nothing of a lost process may be left.
const promised = 2 * time.Second

func TestMain(m *testing.M) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "cannot become a subreaper:", err)
		os.Exit(1)
	}
	flag.Parse()
	flag.Set("test.parallel", "8") // what is parallel here waits and does not compute
	code := m.Run()
	removeFailpointPrograms()
	if left := strangers(); len(left) > 0 {
		fmt.Fprintln(os.Stderr, "still running after the tests:", left)
		code = 1
	}
	os.Exit(code)
}

// within polls until ok holds and tells whether that came in time.
func within(limit time.Duration, ok func() bool) bool {
	end := time.Now().Add(limit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(end) {
			return false
		}
		<-tick.C
	}
	return true
}

// await lets time pass until the moment of a fault, where that is no event.
func await(d time.Duration) { <-time.NewTimer(d).C }

// share is how many repetitions of n a test makes: root's run makes all of them, a
// plain user's, which goes the same way, a third.
func share(n int) int {
	if os.Geteuid() == 0 {
		return n
	}
	return n / 3
}

// process is one entry of the host's process table.
type process struct {
	pid, parent int
	state       byte
	args        []string
}

func (p process) String() string { return fmt.Sprintf("%d(%c) %q", p.pid, p.state, p.args) }

func (p process) zombie() bool { return p.state == 'Z' || p.state == 'X' }

// program is the base name of what it runs.
func (p process) program() string {
	if len(p.args) == 0 {
		return ""
	}
	return filepath.Base(p.args[0])
}

// readProcess fails for one that is gone.
func readProcess(pid int) (process, bool) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return process{}, false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return process{}, false
	}
	line, _ := os.ReadFile(dir + "cmdline")
	args := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	return process{pid: pid, parent: parent, state: fields[0][0], args: args}, true
}

func processTable() map[int]process {
	table := map[int]process{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			table[pid] = p
		}
	}
	return table
}

// below returns what descends from a process, zombies included, parents before
// their children.
func below(root int) []process {
	children := map[int][]process{}
	for _, p := range processTable() {
		children[p.parent] = append(children[p.parent], p)
	}
	found := slices.Clone(children[root])
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found
}

// strangers returns what runs below this test besides the allowed and the cells
// that an allowed factory holds ready.
func strangers(allowed ...int) []process {
	all := below(os.Getpid())
	factories := map[int]bool{}
	for _, p := range all {
		factories[p.pid] = slices.Contains(p.args, "factory") && slices.Contains(allowed, p.pid)
	}
	return slices.DeleteFunc(all, func(p process) bool {
		return p.zombie() || slices.Contains(allowed, p.pid) || factories[p.parent] && slices.Contains(p.args, "factory")
	})
}

// wantNobodyBut fails unless soon nothing but the allowed runs below this test.
func wantNobodyBut(t testing.TB, allowed ...int) {
	t.Helper()
	began := time.Now()
	if !within(promised, func() bool { return len(strangers(allowed...)) == 0 }) {
		t.Errorf("still running after %v: %v", time.Since(began), strangers(allowed...))
	}
}

// wantGone fails unless soon none of the processes runs.
func wantGone(t testing.TB, pids ...int) {
	t.Helper()
	if !within(promised, func() bool { return !slices.ContainsFunc(pids, running) }) {
		t.Errorf("of %v some still run: %v", pids, strangers())
	}
}

// running is false once nothing of a process runs: one whose first thread is a zombie
// holds its descriptors for as long as it has others, and nobody knows yet.
func running(pid int) bool {
	p, ok := readProcess(pid)
	threads, _ := os.ReadDir(filepath.Join("/proc", itoa(pid), "task"))
	return ok && (!p.zombie() || len(threads) > 1)
}

var markers atomic.Int64

// mark is an argument of sleep(1) that no other process on this host has.
func mark() string { return fmt.Sprintf("300.%07d%05d", os.Getpid(), markers.Add(1)) }

// marked returns the running processes that have a marker among their arguments.
func marked(marker string) []process {
	var found []process
	for _, p := range processTable() {
		if !p.zombie() && slices.Contains(p.args, marker) {
			found = append(found, p)
		}
	}
	return found
}

// wantMarked is the control of wantNoneMarked.
func wantMarked(t testing.TB, marker string, n int) {
	t.Helper()
	if !within(promised, func() bool { return len(marked(marker)) == n }) {
		t.Fatalf("control: %d processes of the command run, want %d", len(marked(marker)), n)
	}
}

func wantNoneMarked(t testing.TB, marker string) {
	t.Helper()
	if !within(promised, func() bool { return len(marked(marker)) == 0 }) {
		t.Errorf("descendants after %v: %v", promised, marked(marker))
	}
}

// signal sends a signal to a process that must be there.
func signal(t testing.TB, pid int, s unix.Signal) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("no process to send %v to among %v", s, below(os.Getpid())) // 0 is this very process group
	}
	if err := unix.Kill(pid, s); err != nil {
		t.Fatalf("cannot send %v to %d: %v", s, pid, err)
	}
}

// stop sends SIGSTOP and waits until every thread has stopped.
func stop(t testing.TB, pid int) {
	t.Helper()
	signal(t, pid, unix.SIGSTOP)
	t.Cleanup(func() { unix.Kill(pid, unix.SIGCONT) }) // so that a failed test can end it
	if !within(promised, func() bool { return allStopped(pid) }) {
		t.Fatalf("%d does not stop", pid)
	}
}

func allStopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, name := range threads {
		stat, err := os.ReadFile(name)
		if err == nil && !bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T")) {
			return false
		}
	}
	return true
}
