package line_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"codespace/tests/need"
)

func TestMountIsShownReadOnly(t *testing.T) {
	dir, other := workspace(t), t.TempDir()
	write(t, other, map[string]string{"sdk/tool": "#!/bin/sh\necho tool\n", "sdk/data": "data\n", "beside": "x"})
	sdk := filepath.Join(other, "sdk")
	must(t, os.Chmod(filepath.Join(sdk, "tool"), 0o755))
	look := shell("cat " + sdk + "/data && " + sdk + "/tool")
	if r := run(t, dir, append([]string{"--"}, look...)...); r.code == 0 {
		t.Fatalf("control: without --mount it is there: %q", r.stdout)
	}
	r := run(t, dir, append([]string{"--mount", sdk, "--"}, look...)...).wants(t, 0)
	if r.stdout != "data\ntool\n" {
		t.Errorf("stdout %q", r.stdout)
	}
	line := "echo x > " + sdk + "/data; touch " + sdk + "/new; chmod 777 " + sdk + "; ls " + other
	r = run(t, dir, append([]string{"--mount", sdk, "--"}, shell(line)...)...).wants(t, 0)
	if strings.Count(r.stderr, "Read-only file system") != 3 || r.stdout != "sdk\n" || contents(t, sdk+"/data") != "data\n" {
		t.Errorf("stdout %q, stderr %q", r.stdout, r.stderr)
	}
}

func TestCacheOutlivesACommand(t *testing.T) {
	dir, other := workspace(t), workspace(t)
	keep := append([]string{"--cache", "line", "--"}, shell("cat ~/.cache/line/kept; echo kept >> ~/.cache/line/kept; echo x > ~/elsewhere; ls ~")...)
	run(t, dir, keep...).wants(t, 0)
	if r := run(t, dir, keep...).wants(t, 0); !strings.HasPrefix(r.stdout, "kept\n") || strings.Contains(r.stderr, "No such file") {
		t.Errorf("the second command finds stdout %q, stderr %q", r.stdout, r.stderr)
	}
	if r := run(t, other, keep...).wants(t, 0); strings.Contains(r.stdout, "kept") {
		t.Errorf("another workspace finds %q", r.stdout)
	}
	if r := run(t, dir, append([]string{"--"}, shell("ls -A ~ ~/.cache")...)...); strings.Contains(r.stdout, "elsewhere") || strings.Contains(r.stdout, "line") {
		t.Errorf("without the flag there is %q", r.stdout)
	}
}

// Caches lie in the daemon's state, which need not belong to whom the workspace
// belongs to.
func TestCacheOfAnotherOwnersWorkspace(t *testing.T) {
	need.Root(t)
	dir := workspace(t)
	must(t, os.Chown(dir, 23456, 34567))
	keep := shell("echo x >> ~/.cache/go-build/f && cat ~/.cache/go-build/f")
	for _, want := range []string{"x\n", "x\nx\n"} {
		if r := run(t, dir, append([]string{"--"}, keep...)...).wants(t, 0); r.stdout != want {
			t.Errorf("the cache holds %q, want %q", r.stdout, want)
		}
	}
	file := config(t, `
[state]
dir = %q
[profiles.ci]
extends = "workspace-write"
caches = ["go-build"]
[workspaces.site]
root = %q
profile = "ci"
identity = "owner"
`, t.TempDir()+"/state", dir)
	s := open(t, nothing, "--config", file)
	s.says("touch", "mine")
	if st := lstat(t, dir+"/mine"); st.Uid != 23456 || st.Gid != 34567 {
		t.Errorf("with the owner's identity a file belongs to %d:%d", st.Uid, st.Gid)
	}
	if st, out := s.run(keep...); st.text("exit_code") != "0" || out != "x\n" {
		t.Errorf("with the owner's identity: %q", out)
	}
}

func TestVariables(t *testing.T) {
	dir := workspace(t)
	cmd := command(t, dir, "--env", "LINE_HERE", "--env", "GIVEN=v=w", "--", "sh", "-c", `echo "$LINE_HERE $GIVEN $LINE_NOT"`)
	cmd.Env = append(os.Environ(), "LINE_HERE=from here", "LINE_NOT=hidden")
	if r := finish(t, cmd).wants(t, 0); r.stdout != "from here v=w \n" {
		t.Errorf("stdout %q", r.stdout)
	}
}

// memoryGroup needs a cgroup that this user can make and that limits memory.
func memoryGroup(t testing.TB) {
	t.Helper()
	need.Feature(t, "memory-cgroup", canLimitMemory(), "no memory controller in which this user may make a group")
}

func canLimitMemory() bool {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		dir := filepath.Join("/sys/fs/cgroup", part[2])
		if part[1] == "memory" {
			dir = filepath.Join("/sys/fs/cgroup/memory", part[2])
		}
		controllers, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if (part[1] == "memory" || strings.Contains(string(controllers), "memory")) && unix.Access(dir, unix.W_OK) == nil {
			return true
		}
	}
	return false
}

func TestMemoryLimit(t *testing.T) {
	memoryGroup(t)
	dir := workspace(t)
	take := []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=300M", "count=1"}
	run(t, dir, append([]string{"--"}, take...)...).wants(t, 0)
	r := run(t, dir, append([]string{"--memory", "64MiB", "--json", "--"}, take...)...).wants(t, 137)
	if rec := r.record(t); rec.Termination != "oom" || rec.ExitCode != nil {
		t.Errorf("record %+v", rec)
	}
	if !strings.Contains(r.stderr, "memory limit") {
		t.Errorf("stderr %q", r.stderr)
	}
	s := start(t, dir, "--memory", "64MiB")
	st, _ := s.run(take...)
	st.wants(t, fields{"termination": "oom", "exit_code": nil, "signal": "SIGKILL"})
	if peak := st.below("usage").number("peak_memory_bytes"); peak < 32<<20 || peak > 80<<20 {
		t.Errorf("the peak is %d bytes", peak)
	}
	st, _ = s.run("true") // a memory limit is a command's own
	st.wants(t, fields{"termination": "exited", "exit_code": 0})
}

func TestStrict(t *testing.T) {
	dir := workspace(t)
	strict := command(t, dir, "--strict", "--", "touch", "made")
	if canLimitMemory() {
		finish(t, strict).wants(t, 0)
		return
	}
	if r := finish(t, strict).wants(t, 125); !strings.Contains(r.stderr, "cgroup") || !strings.Contains(r.stderr, "SANDBOX_UNAVAILABLE") {
		t.Errorf("stderr %q", r.stderr)
	}
	if !absent(dir + "/made") {
		t.Error("it ran all the same")
	}
	if r := run(t, dir, "--", "true").wants(t, 0); !strings.Contains(r.stderr, "not enforced") {
		t.Errorf("best effort is not said: %q", r.stderr)
	}
}

// Where namespaces are forbidden nothing runs, and the setting is named.
func TestNoSandboxNoCommand(t *testing.T) {
	need.UserNamespaces(t)
	dir := workspace(t)
	inner := command(t, dir, "--", "touch", "made")
	line := `echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"`
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", line, "sh"}, inner.Args...)...)
	cmd.SysProcAttr = nested()
	r := finish(t, cmd).wants(t, 125)
	if !strings.Contains(r.stderr, "max_user_namespaces") || !absent(dir+"/made") {
		t.Errorf("made: %v, stderr %q", !absent(dir+"/made"), r.stderr)
	}
}
