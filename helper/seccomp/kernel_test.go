package seccomp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// under is testdata/under.c, built, with the programs in files.
type under struct {
	binary, allow, deny string
}

func buildUnder(t *testing.T, debug bool) under {
	t.Helper()
	dir := t.TempDir()
	u := under{filepath.Join(dir, "under"), filepath.Join(dir, "allow"), filepath.Join(dir, "deny")}
	build := exec.Command("gcc", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-o", u.binary, "testdata/under.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build testdata/under.c: %v\n%s", err, out)
	}
	programs := mustCompile(t, debug)
	write(t, u.allow, programs.Allow)
	write(t, u.deny, programs.Deny)
	return u
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// probes runs every probe of under.c, filtered or not.
func (u under) probes(t *testing.T, filtered bool) map[string]string {
	t.Helper()
	cmd := exec.Command(u.binary, "-", "-")
	if filtered {
		cmd = exec.Command(u.binary, u.allow, u.deny)
	}
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot run probes: %v", err)
	}
	results := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, result, _ := strings.Cut(strings.TrimSpace(line), " ")
		results[name] = result
	}
	return results
}

const (
	works     = "errno 0"
	isRefused = "errno 1"
	isAbsent  = "errno 38"
	isKilled  = "signal 31" // SIGSYS
)

var kernelAnswers = []struct {
	probe, want string
	tracing     bool // with debug the kernel decides
}{
	{"tiocsti", isRefused, false},
	{"tiocsti_high", isRefused, false},
	{"window_size", works, false},
	{"unshare_user", isRefused, false},
	{"clone_user", isRefused, false},
	{"clone_user_high", isRefused, false},
	{"clone3_null", isAbsent, false},
	{"fork", works, false},
	{"thread", works, false},
	{"socket_packet", isRefused, false},
	{"socket_uevent", isRefused, false},
	{"socket_uevent_high", isRefused, false},
	{"socket_raw", isRefused, false},
	{"socket_tcp", works, false},
	{"socket_udp", works, false},
	{"socket_pair", works, false},
	{"addresses", works, false},
	{"no_randomize", isRefused, true},
	{"trace_me", isRefused, true},
	{"tracer_any", isRefused, true},
	{"keyring", isRefused, false},
	{"io_uring", isRefused, false},
	{"mount_api", isAbsent, false},
	{"mount_tmpfs", isRefused, false},
	{"device", isRefused, false},
	{"fifo", works, false},
	{"limits_of_parent", isRefused, false},
	{"limits_of_self", works, false},
	{"name", works, false},
	{"newest", isAbsent, false},
	{"i386_getpid", isKilled, false},
	{"x32_getpid", isKilled, false},
}

// TestKernel loads the programs and makes real calls. The control is the same
// call without a filter: what the kernel answers alike there shows nothing.
func TestKernel(t *testing.T) {
	for _, debug := range []bool{false, true} {
		u := buildUnder(t, debug)
		free, filtered := u.probes(t, false), u.probes(t, true)
		shown := 0
		for _, answer := range kernelAnswers {
			control, got, want := free[answer.probe], filtered[answer.probe], answer.want
			if debug && answer.tracing {
				want = control
			}
			switch {
			case (want == works) != (control == want), strings.HasPrefix(control, "signal"):
				t.Logf("debug %v: %s: not shown, %s without a filter too", debug, answer.probe, control)
				continue
			case got != want:
				t.Errorf("debug %v: %s: %s, want %s (without a filter %s)", debug, answer.probe, got, want, control)
			}
			shown++
		}
		if len(free) != len(kernelAnswers) || len(filtered) != len(kernelAnswers) {
			t.Errorf("debug %v: %d and %d probes ran, want %d", debug, len(free), len(filtered), len(kernelAnswers))
		}
		t.Logf("debug %v: %d of %d probes shown", debug, shown, len(kernelAnswers))
	}
}

// tools are what must keep running (E12), as short as each goes.
var tools = []struct {
	name, script string
}{
	{"bash", `set -m; sleep 9 & kill %1; wait; (trap "" TERM; :); echo $((1+1)) | cat`},
	{"gcc", `printf 'int main(void){return 0;}' >a.c && gcc a.c -o a && ./a`},
	{"make", `printf 'all: a b c\na b c:\n\ttouch $@\n' >Makefile && make -j3`},
	{"git", `git init -q r && cd r && git -c user.name=a -c user.email=b@c commit -q --allow-empty -m x && git gc -q`},
	{"python3", `python3 -c '
import asyncio, multiprocessing, subprocess, venv
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool: assert pool.map(abs, [-1, -2]) == [1, 2]
    subprocess.run(["true"], check=True)
    async def child(): return await (await asyncio.create_subprocess_exec("true")).wait()
    assert asyncio.run(child()) == 0
    venv.create("v", with_pip=False)
'`},
	{"node", `node -e '
const {Worker} = require("worker_threads");
new Worker("require(\"worker_threads\").parentPort.postMessage(1)", {eval: true}).on("message", () =>
  require("child_process").exec("true", error => process.exit(error ? 1 : 0)))'`},
	{"java", `printf 'class A{public static void main(String[] a)throws Exception{Thread t=new Thread(()->{});t.start();t.join();
System.exit(new ProcessBuilder("true").start().waitFor());}}' >A.java && java A.java`},
	{"rustc", `printf 'fn main(){std::thread::spawn(||{}).join().unwrap();}' >a.rs && rustc a.rs && ./a`},
}

// TestTools runs each installed tool below the filter.
func TestTools(t *testing.T) {
	u := buildUnder(t, false)
	for _, tool := range tools {
		if _, err := exec.LookPath(tool.name); err != nil {
			t.Logf("%s: not installed", tool.name)
			continue
		}
		out, err := u.shell(t, tool.script, u.allow, u.deny)
		if err == nil {
			continue
		}
		if _, control := u.shell(t, tool.script, "-", "-"); control != nil {
			t.Logf("%s: not shown, fails without a filter too: %v", tool.name, control)
			continue
		}
		t.Errorf("%s: %v\n%s", tool.name, err, out)
	}
}

// TestGoRuntime runs this binary below the filter: threads, preemption, pipes.
func TestGoRuntime(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	u := buildUnder(t, false)
	if out, err := u.shell(t, self+" -test.run '^TestCompileIsDeterministic$'", u.allow, u.deny); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestTracing: strace works with debug and not without.
func TestTracing(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Logf("strace: not installed")
		return
	}
	for _, debug := range []bool{false, true} {
		u := buildUnder(t, debug)
		out, err := u.shell(t, "strace -f -o log true && grep -q execve log", u.allow, u.deny)
		if (err == nil) != debug {
			t.Errorf("debug %v: strace: %v\n%s", debug, err, out)
		}
	}
}

func (u under) shell(t *testing.T, script, allow, deny string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), u.binary, allow, deny, "bash", "-c", script)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	return string(out), err
}
