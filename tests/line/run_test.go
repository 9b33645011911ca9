package line_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"codespace/tests/need"
)

func TestRunExitStatus(t *testing.T) {
	dir := workspace(t)
	for line, code := range map[string]int{
		"exit 0": 0, "exit 7": 7, "exit 255": 255, "kill -KILL $$": 128 + 9, "kill -SEGV $$": 128 + 11,
	} {
		run(t, dir, append([]string{"--"}, shell(line)...)...).wants(t, code)
	}
	r := run(t, dir, append([]string{"--timeout", "700ms", "--"}, shell("echo kept; sleep 300")...)...).wants(t, 124)
	if r.stdout != "kept\n" || !strings.Contains(r.stderr, "700ms") {
		t.Errorf("the time limit: stdout %q, stderr %q", r.stdout, r.stderr)
	}
}

func TestRunMisused(t *testing.T) {
	dir := workspace(t)
	for name, args := range map[string][]string{
		"no command":            {},
		"unknown flag":          {"--no-such-flag", "--", "true"},
		"flag of a later time":  {"--network", "enabled", "--", "true"},
		"bad size":              {"--memory", "much", "--", "true"},
		"bad time":              {"--timeout", "soon", "--", "true"},
		"variable not set here": {"--env", "LINE_NOT_SET_HERE", "--", "true"},
		"variable of our own":   {"--env", "HOME=/", "--", "true"},
		"no name of a cache":    {"--cache", "../x", "--", "true"},
		"mount of nothing":      {"--mount", dir + "/absent", "--", "true"},
		"mount of /etc":         {"--mount", "/etc", "--", "true"},
		"mount of /":            {"--mount", "/", "--", "true"},
	} {
		if r := run(t, dir, args...).wants(t, 125); r.stdout != "" || !strings.HasPrefix(r.stderr, "codespace: cannot ") && !strings.HasPrefix(r.stderr, "codespace: ") {
			t.Errorf("%s: stdout %q, stderr %q", name, r.stdout, r.stderr)
		}
	}
}

func TestRunStreams(t *testing.T) {
	cmd := command(t, workspace(t), append([]string{"--"}, shell("cat; echo to-err >&2; echo to-out")...)...)
	cmd.Stdin = strings.NewReader("from in\n")
	if r := finish(t, cmd).wants(t, 0); r.stdout != "from in\nto-out\n" || !strings.HasSuffix(r.stderr, "to-err\n") {
		t.Errorf("stdout %q, stderr %q", r.stdout, r.stderr)
	}
}

func TestRunPassesEveryByte(t *testing.T) {
	data := make([]byte, 5<<20)
	rand.NewChaCha8([32]byte{5}).Read(data)
	cmd := command(t, workspace(t), "--", "cat")
	cmd.Stdin = bytes.NewReader(data)
	r := finish(t, cmd).wants(t, 0)
	if len(r.stdout) != len(data) || sha256.Sum256([]byte(r.stdout)) != sha256.Sum256(data) {
		t.Errorf("%d bytes come back as %d", len(data), len(r.stdout))
	}
}

// A program may expect its streams to block: few look for EAGAIN.
func TestRunStreamsBlock(t *testing.T) {
	dir := workspace(t)
	asked := append([]string{"--mount", self(t), "--"}, probe(t, "blocking")...)
	cmd := command(t, dir, asked...)
	cmd.Stdin = strings.NewReader("in")
	if r := finish(t, cmd).wants(t, 0); r.stdout != "0 ok\n1 ok\n2 ok\n" {
		t.Errorf("streams of codespace run: %q", r.stdout)
	}
	s := startProbing(t, dir)
	if out := s.says(probe(t, "blocking")...); out != "0 ok\n1 ok\n2 ok\n" {
		t.Errorf("streams of codespace mcp: %q", out)
	}
}

// The end of the command is the end, whoever still holds a stream of it.
func TestRunEndsWithItsCommand(t *testing.T) {
	m := marker()
	cmd := command(t, workspace(t), append([]string{"--"}, shell("sleep "+m+" & echo done")...)...)
	in, err := cmd.StdinPipe() // which nobody closes
	must(t, err)
	defer in.Close()
	began := time.Now()
	if r := background(t, cmd).end().wants(t, 0); r.stdout != "done\n" {
		t.Errorf("stdout %q", r.stdout)
	}
	if took := time.Since(began); took > soon/2 {
		t.Errorf("it took %v", took)
	}
	if left := sleepers(t, m); len(left) > 0 {
		t.Errorf("%v outlives codespace run", left)
	}
}

// A reader that has enough ends an endless producer, as in any pipeline.
func TestRunIntoHead(t *testing.T) {
	m := marker()
	l := background(t, command(t, workspace(t), append([]string{"--"}, shell("sleep "+m+" & yes word")...)...))
	if line := l.line(); line != "word" {
		t.Errorf("the first line is %q", line)
	}
	appears(t, m)
	must(t, l.stdout.Close())
	ended := make(chan error, 1)
	go func() { ended <- l.cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(soon):
		t.Fatalf("codespace run goes on; stderr %q", l.stderr.String())
	}
	gone(t, 2*time.Second, m)
}

func TestRunPassesSignals(t *testing.T) {
	dir := workspace(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1} {
		line := fmt.Sprintf("trap 'echo caught; exit %d' %d; echo up; while :; do sleep 0.02; done", 40+sig, sig)
		l := background(t, command(t, dir, append([]string{"--"}, shell(line)...)...))
		if up := l.line(); up != "up" {
			t.Fatalf("%v: the first line is %q", sig, up)
		}
		must(t, l.cmd.Process.Signal(sig))
		if r := l.end().wants(t, 40+int(sig)); r.stdout != "caught\n" {
			t.Errorf("%v: stdout %q, stderr %q", sig, r.stdout, r.stderr)
		}
	}
	l := background(t, command(t, dir, append([]string{"--"}, shell("echo up; exec sleep 300")...)...))
	l.line()
	must(t, l.cmd.Process.Signal(syscall.SIGTERM))
	l.end().wants(t, 128+15)
}

func TestRunKilled(t *testing.T) {
	m := marker()
	l := background(t, command(t, workspace(t), "--", "sleep", m))
	appears(t, m)
	must(t, l.cmd.Process.Kill())
	gone(t, 2*time.Second, m)
	l.end().wants(t, -1)
}

// record is what --json writes.
type record struct {
	Termination string  `json:"termination"`
	ExitCode    *int    `json:"exit_code"`
	Signal      string  `json:"signal"`
	ProcessID   string  `json:"process_id"`
	Workspace   string  `json:"workspace_id"`
	Started     string  `json:"started_at"`
	Ended       string  `json:"ended_at"`
	Receipt     receipt `json:"receipt"`
	Error       struct {
		Code, Message string
		Details       map[string]any
	} `json:"error"`
}

type receipt struct {
	Digest string   `json:"digest"`
	Layers []string `json:"layers"`
}

func (r result) record(t *testing.T) record {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
	last := lines[len(lines)-1]
	var rec record
	if err := json.Unmarshal([]byte(last), &rec); err != nil {
		t.Fatalf("the last line on stderr is no record: %q", r.stderr)
	}
	if strings.Contains(last, ":null") || strings.Contains(last, `:""`) {
		t.Errorf("what does not apply is there: %s", last)
	}
	return rec
}

func TestRunRecord(t *testing.T) {
	dir := workspace(t)
	r := run(t, dir, append([]string{"--json", "--"}, shell("echo out; exit 7")...)...).wants(t, 7)
	rec := r.record(t)
	if rec.Termination != "exited" || rec.ExitCode == nil || *rec.ExitCode != 7 || rec.Signal != "" || r.stdout != "out\n" {
		t.Errorf("record %+v, stdout %q", rec, r.stdout)
	}
	if !regexp.MustCompile("^sha256:[0-9a-f]{64}$").MatchString(rec.Receipt.Digest) || len(rec.Receipt.Layers) == 0 || rec.Workspace != "ws" || rec.Started >= rec.Ended {
		t.Errorf("record %+v", rec)
	}
	killed := run(t, dir, append([]string{"--json", "--"}, shell("kill -KILL $$")...)...).wants(t, 137).record(t)
	if killed.Termination != "signaled" || killed.ExitCode != nil || killed.Signal != "SIGKILL" {
		t.Errorf("record %+v", killed)
	}
	late := run(t, dir, "--json", "--timeout", "300ms", "--", "sleep", "300").wants(t, 124).record(t)
	if late.Termination != "timeout" || late.ExitCode != nil {
		t.Errorf("record %+v", late)
	}
}

// A command that did not start has a record too: scripts read one form.
func TestRunRecordOfWhatDidNotStart(t *testing.T) {
	dir := workspace(t)
	write(t, dir, map[string]string{"plain": "x\n"})
	for _, c := range []struct {
		exit       int
		code, says string
		args       []string
	}{
		{127, "PROCESS_SPAWN_FAILED", "not found", []string{"--", "nosuch"}},
		{126, "PROCESS_SPAWN_FAILED", "not executable", []string{"--", "./plain"}},
		{125, "INVALID_ARGUMENT", "no command given", nil},
		{125, "INVALID_ARGUMENT", "no such file", []string{"--mount", dir + "/absent", "--", "true"}},
		{125, "INVALID_ARGUMENT", "no unit", []string{"--timeout", "5", "--", "true"}},
		{125, "INVALID_ARGUMENT", "unknown flag", []string{"--nosuch", "--", "true"}},
	} {
		rec := run(t, dir, append([]string{"--json"}, c.args...)...).wants(t, c.exit).record(t)
		if rec.Error.Code != c.code || !strings.Contains(rec.Error.Message, c.says) || rec.Termination != "" {
			t.Errorf("%q: record %+v", c.args, rec)
		}
	}
}

// Output that cannot be passed on is an error of a command that ended all the same.
func TestRunRecordOfLostOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	must(t, err)
	defer full.Close()
	cmd := command(t, workspace(t), append([]string{"--json", "--"}, shell("echo out; exit 3")...)...)
	cmd.Stdout = full
	rec := finish(t, cmd).wants(t, 125).record(t)
	if rec.Termination != "exited" || rec.ExitCode == nil || *rec.ExitCode != 3 || !strings.Contains(rec.Error.Message, "output") {
		t.Errorf("record %+v", rec)
	}
}

// A flag whose value cannot be used is named with what to write instead.
func TestRunRefusesFlagValues(t *testing.T) {
	dir := workspace(t)
	for says, args := range map[string][]string{
		"for seconds write 5s":    {"--timeout", "5"},
		"write 90s, 10m or 1h30m": {"--timeout", "soon"},
		"it is negative":          {"--timeout=-1s"},
		"was given before":        {"-w", dir},
		"--memory 2MiB":           {"--memory", "1GiB", "--memory", "2MiB"},
		"only restricted":         {"--network", "enabled"},
	} {
		r := run(t, dir, append(args, "--", "touch", "made")...).wants(t, 125)
		if !strings.Contains(r.stderr, says) || strings.Count(r.stderr, "\n") != 1 || !absent(dir+"/made") {
			t.Errorf("%q: stderr %q", args, r.stderr)
		}
	}
	run(t, dir, "--network", "restricted", "--timeout", "0", "--", "true").wants(t, 0)
}

// The workspace is the current directory unless it is named.
func TestRunHere(t *testing.T) {
	dir := workspace(t)
	cmd := command(t, ".", "--", "sh", "-c", "pwd; touch made")
	cmd.Dir = dir
	if r := finish(t, cmd).wants(t, 0); r.stdout != dir+"\n" || absent(dir+"/made") {
		t.Errorf("it ran in %q", r.stdout)
	}
	if _, err := os.Stat(dir + "/made"); err != nil {
		t.Error(err)
	}
}

// Programs that were not kept together are named, and trying again is not advised.
func TestRunWithoutHelper(t *testing.T) {
	dir, bin := workspace(t), t.TempDir()
	for _, name := range []string{"codespace", "codespace-runner"} {
		b, err := os.ReadFile(need.Binary(t, name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(bin, name), b, 0o755))
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "codespace"), "run", "-w", dir, "--json", "--", "touch", "made")
	r := finish(t, cmd).wants(t, 125)
	if rec := r.record(t); rec.Error.Code != "SANDBOX_UNAVAILABLE" || !strings.Contains(rec.Error.Message, "codespace-helper") ||
		strings.Contains(r.stderr, "try again") || !absent(dir+"/made") {
		t.Errorf("stderr %q", r.stderr)
	}
}
