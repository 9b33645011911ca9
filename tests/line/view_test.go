package line_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// fixed is the environment of every command.
var fixed = []string{
	"HOME=/home/sandbox", "LANG=C.UTF-8", "LOGNAME=sandbox", "PATH=" + sandboxPath, "SHELL=/bin/sh", "TMPDIR=/tmp", "USER=sandbox",
}

func TestEnvironment(t *testing.T) {
	dir := workspace(t)
	secret := func(cmd *exec.Cmd) {
		cmd.Env = append(os.Environ(), "SECRET_TOKEN=x-marks-it", "PASSED=from here")
	}
	s := open(t, secret, "-w", dir, "--env", "PASSED", "--env", "GIVEN=a=b c", "--env", "EMPTY=")
	want := append([]string{"EMPTY=", "GIVEN=a=b c", "PASSED=from here"}, fixed...)
	got := strings.Split(strings.TrimSuffix(s.says("env", "-0"), "\x00"), "\x00")
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
	// Neither by way of a process that has more than the command.
	search := shell("cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c -e SECRET_TOKEN -e x-marks-it")
	control := exec.Command(search[0], search[1:]...)
	control.Env = append(os.Environ(), "SECRET_TOKEN=x-marks-it")
	if out, _ := control.Output(); strings.TrimSpace(string(out)) == "0" {
		t.Errorf("control: outside the search finds nothing")
	}
	// grep finds itself: its arguments hold the words.
	_, out := s.run(shell("cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c -e SECRET_TOKEN -e x-marks-it")...)
	if out != "0\n" {
		t.Errorf("the daemon's environment is found inside %q times", out)
	}
}

// Descriptors that whoever starts codespace left open must not reach a command.
func TestInheritedDescriptors(t *testing.T) {
	spare := make([]*os.File, 50)
	for i := range spare {
		f, err := os.Open("/dev/null")
		must(t, err)
		defer f.Close()
		spare[i] = f
	}
	inherit := func(cmd *exec.Cmd) { cmd.ExtraFiles = spare }
	list := shell("ls /proc/$$/fd")
	control := exec.Command(list[0], list[1:]...)
	inherit(control)
	out, err := control.Output()
	must(t, err)
	if n := len(strings.Fields(string(out))); n < 53 {
		t.Fatalf("control: a child inherits %d descriptors, want 53 or more", n)
	}
	s := open(t, inherit, "-w", workspace(t))
	for range 2 {
		if out := s.says(list...); out != "0\n1\n2\n" {
			t.Errorf("descriptors inside: %q", out)
		}
	}
	cmd := command(t, workspace(t), append([]string{"--"}, list...)...)
	inherit(cmd)
	if r := finish(t, cmd).wants(t, 0); r.stdout != "0\n1\n2\n" {
		t.Errorf("descriptors inside codespace run: %q", r.stdout)
	}
}

func TestIdentity(t *testing.T) {
	s := startProbing(t, workspace(t))
	if out := s.says("id"); out != "uid=1000(sandbox) gid=1000(sandbox) groups=1000(sandbox)\n" {
		t.Errorf("id says %q", out)
	}
	want := map[string]string{"Uid": "1000 1000 1000 1000", "Gid": "1000 1000 1000 1000", "NoNewPrivs": "1", "Seccomp": "2"}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		want[set] = "0000000000000000"
	}
	seen := strings.Split(s.says(probe(t, "threads")...), "thread\n")[1:]
	if len(seen) < 5 {
		t.Fatalf("the probe has %d threads", len(seen))
	}
	for _, thread := range seen {
		shown := statusOf(thread)
		for key, value := range want {
			if shown[key] != value {
				t.Errorf("thread %s has %s %q, want %q", shown["Pid"], key, shown[key], value)
			}
		}
	}
}

// statusOf reads what proc_pid_status(5) shows.
func statusOf(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		fields[key] = strings.Join(strings.Fields(value), " ")
	}
	return fields
}

// On the host a command is never root, whoever started codespace.
func TestHostIdentity(t *testing.T) {
	s := start(t, workspace(t))
	m := marker()
	id := s.started("sleep", m)
	appears(t, m)
	uid := statusOf(contents(t, "/proc/"+sleepers(t, m)[0]+"/status"))["Uid"]
	own := strings.Repeat(fmt.Sprint(os.Geteuid())+" ", 3) + fmt.Sprint(os.Geteuid())
	if os.Geteuid() != 0 && uid != own {
		t.Errorf("uid on the host %q, want the starting user's %q", uid, own)
	}
	if strings.Contains(" "+uid+" ", " 0 ") || os.Geteuid() == 0 && len(strings.Fields(uid)[0]) < 10 {
		t.Errorf("uid on the host %q, want one of the range above 1900000000", uid)
	}
	s.terminate(id)
	s.exited(id)
}

func TestView(t *testing.T) {
	for _, path := range []string{"/etc/shadow", "/etc/passwd", "/root", "/sys/kernel", "/boot", "/etc/hostname"} {
		if absent(path) {
			t.Fatalf("control: this host has no %s", path)
		}
	}
	s := start(t, workspace(t))
	for _, path := range []string{"/etc/shadow", "/etc/gshadow", "/etc/ssh", "/root", "/boot", "/sys", "/opt", "/srv", "/mnt", "/etc/machine-id", "/var/log", "/var/run"} {
		if st, out := s.run("ls", "-ld", path); st.text("exit_code") == "0" {
			t.Errorf("inside there is %s", out)
		}
	}
	for path, want := range map[string]string{"/home": "sandbox\n", "/run": "", "/var/lib": "", "/var/cache": "", "/dev/shm": "", "/dev/pts": "ptmx\n"} {
		if out := s.says("ls", "-A", path); out != want {
			t.Errorf("%s holds %q, want %q", path, out, want)
		}
	}
	if out := s.says("cat", "/etc/passwd"); strings.Count(out, "\n") > 3 || !strings.Contains(out, "sandbox:x:1000:1000:") {
		t.Errorf("/etc/passwd is not the sandbox's own: %q", out)
	}
}

func TestOnlyTheWorkspaceIsWritable(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	for _, path := range []string{"/usr/x", "/etc/x", "/x", "/bin/x", "/run/x", "/var/lib/x", "/home/x", "/dev/x"} {
		st, out := s.run(shell("echo x > " + path)...)
		if st.text("exit_code") == "0" || !strings.Contains(out, "Read-only file system") && !strings.Contains(out, "Permission denied") {
			t.Errorf("write to %s: %v %q", path, st.fields, out)
		}
	}
	if _, out := s.run(shell("echo x > /usr/x")...); !strings.Contains(out, "Read-only file system") {
		t.Errorf("/usr is not refused for being read-only: %q", out)
	}
	// Here, in /tmp and at home a command may write; the latter two outlive it.
	s.says(shell("echo x > here && echo x > /tmp/there && echo x > ~/home && echo x > /dev/shm/gone")...)
	if contents(t, dir+"/here") != "x\n" || !absent("/tmp/there") {
		t.Error("the workspace is not the host's, or /tmp is")
	}
	if out := s.says(shell("cat /tmp/there ~/home; ls -A /dev/shm")...); out != "x\nx\n" {
		t.Errorf("the next command finds %q", out)
	}
}
