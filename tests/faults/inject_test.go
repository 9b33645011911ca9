package faults_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"codespace/tests/need"
)

// injectLimit bounds one command during which a call fails.
const injectLimit = 30 * time.Second

// evidence is a command that writes down, as its side effect, what confines it.
const evidence = `{ grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)' /proc/self/status
cat /proc/self/uid_map /proc/self/gid_map /proc/self/oom_score_adj /proc/self/cgroup
cut -d ' ' -f 4- /proc/self/mountinfo
ulimit -a; ulimit -aH; umask; hostname; echo /proc/self/fd/*; echo /proc/[0-9]*; cat /proc/net/dev | cut -c 1-7; } >evidence`

// hostIDs differ from one sandbox to the next.
var hostIDs = regexp.MustCompile(`[ug]id=\d+`)

// takeEvidence reads and removes what the command has written; "" if it did not run.
func (p place) takeEvidence(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(p.file("evidence"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	os.Remove(p.file("evidence"))
	lines := strings.Split(hostIDs.ReplaceAllString(string(b), "id of the sandbox"), "\n")
	slices.Sort(lines) // the order of some mounts is by chance
	return strings.Join(lines, "\n")
}

// fault is a call that is made to fail, in whichever process makes it that often.
type fault struct {
	call, how string // how: "error=EPERM" or "signal=KILL"
	when      int
	besides   string // "mkdirat,": calls that are written to the log too
}

func (f fault) String() string { return fmt.Sprintf("%s %d %s", f.call, f.when, f.how) }

// strace are the arguments of strace(1) for a fault.
func (f fault) strace(log string) []string {
	return []string{"-f", "-o", log, "-e", "trace=" + f.besides + f.call, "-e", "signal=none", "-e", fmt.Sprintf("inject=%s:%s:when=%d", f.call, f.how, f.when)}
}

func injected(t testing.TB, log string) bool {
	t.Helper()
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(b), "(INJECTED)")
}

// attach makes strace follow a process; the returned function lets it go.
func attach(t testing.TB, pid int, args []string) func() {
	t.Helper()
	s := start(t, exec.Command(need.Command(t, "strace"), append(args, "-p", itoa(pid))...))
	said := func() bool { return strings.Contains(s.stderr.String(), "attached") }
	if !within(injectLimit, func() bool { return said() || s.ended() }) || !said() {
		t.Fatalf("strace does not attach to %d: %s", pid, &s.stderr)
	}
	return func() {
		s.cmd.Process.Kill() // what it traced goes on; SIGINT may hang in a tracee that ends
		<-s.over
	}
}

// faultsOf spreads at most a few faults over the repetitions of each call, of each
// kind in turn.
func faultsOf(calls map[string]int, most int, how ...string) []fault {
	var all []fault
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		n := calls[call]
		for i := range min(n, most) {
			all = append(all, fault{call: call, how: how[len(all)%len(how)], when: 1 + i*n/min(n, most)})
		}
	}
	return all
}

// closed counts faults by their outcome.
type closed struct{ faults, hit, refused, whole, lost int }

func (c *closed) String() string {
	return fmt.Sprintf("%d of %d closed: %d refused, %d ran whole, %d lost; %d calls were hit",
		c.refused+c.whole+c.lost, c.faults, c.refused, c.whole, c.lost, c.hit)
}

// judge compares what a command wrote with what it writes without a fault. Either
// it did not run and that was said, or it ran as ever and ended as itself, or it is
// said to be lost, of which nothing is known.
func (c *closed) judge(t testing.TB, wrote, control string, said outcome) {
	t.Helper()
	switch {
	case wrote == "" && said == refused:
		c.refused++
	case wrote == control && said == succeeded:
		c.whole++
	case (wrote == "" || wrote == control) && said == lost:
		c.lost++
	case wrote == "" || wrote == control:
		t.Errorf("the command ran: %v, and that was said to be %s", wrote != "", said)
	default:
		t.Errorf("the command ran in a weaker cell (%s):\n%s", said, difference(wrote, control))
	}
}

// outcome is what was said of a command.
type outcome string

const (
	refused   outcome = "refused"
	succeeded outcome = "exited with 0"
	lost      outcome = "lost"
)

func difference(a, b string) string {
	inA, inB := strings.Split(a, "\n"), strings.Split(b, "\n")
	var out []string
	for _, line := range inA {
		if !slices.Contains(inB, line) {
			out = append(out, "with the fault: "+line)
		}
	}
	for _, line := range inB {
		if !slices.Contains(inA, line) {
			out = append(out, "without it:     "+line)
		}
	}
	return strings.Join(out, "\n")
}
