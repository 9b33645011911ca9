package faults_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"codespace/tests/need"
)

// forbidden is what unshare(1) runs before a program to leave it no namespaces: a
// limit of a user namespace holds for what is made below (user_namespaces(7)).
const forbidden = `echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" "$@"`

// inside wraps a command: root of a new user namespace runs the script, which runs
// the command.
func inside(t testing.TB, script string, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	wrapped := exec.Command(need.Command(t, "unshare"), append([]string{"-Urm", "sh", "-c", script}, cmd.Args...)...)
	// Not /tmp/codespace-0: it would belong to whoever is root of no more than this.
	wrapped.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+t.TempDir())
	return wrapped
}

// TestNamespacesForbidden takes user namespaces away: nothing runs, and the message
// names the knob.
func TestNamespacesForbidden(t *testing.T) {
	const knob = "user.max_user_namespaces"
	p := newPlace(t)
	r := start(t, inside(t, forbidden, p.codespace("run", "--", "touch", p.file("ran"))))
	if code := r.wait(t, time.Minute); code != 125 || !strings.Contains(r.stderr.String(), knob) || p.has("ran") {
		t.Errorf("codespace run: exit %d, ran: %v, stderr: %s", code, p.has("ran"), &r.stderr)
	}
	s := p.session(t, inside(t, forbidden, p.codespace("mcp")))
	s.greet(t)
	answer := s.await(t, s.begin("touch", "ran"))
	details, _ := answer.fields["details"].(map[string]any)
	if answer.code() != "SANDBOX_UNAVAILABLE" || details["knob"] != knob || p.has("ran") {
		t.Errorf("exec_command, ran: %v, %v", p.has("ran"), answer)
	}
	s.end(t)
	wantNobodyBut(t)
	p.wantRunWorks(t) // the control
}

// TestNoCgroups takes the cgroup file systems away: workspace_info names what is not
// enforced, and commands run.
func TestNoCgroups(t *testing.T) {
	p := newPlace(t)
	hide := `mount -t tmpfs none /sys/fs/cgroup && exec "$0" "$@"`
	cmd := p.codespace("mcp")
	if os.Geteuid() == 0 {
		wrapped := exec.Command(need.Command(t, "unshare"), append([]string{"-m", "sh", "-c", hide}, cmd.Args...)...)
		wrapped.Env = cmd.Env
		cmd = wrapped
	} else {
		cmd = inside(t, hide, cmd)
	}
	s := p.session(t, cmd)
	s.greet(t)
	info := s.call(t, "workspace_info", map[string]any{"workspace_id": s.workspace})
	if text := info.String(); info.failed || !strings.Contains(text, `"cgroup: none for memory and cpu (not enforced)"`) || !strings.Contains(text, `"enforcement":"best-effort"`) {
		t.Errorf("workspace_info: %s", text)
	}
	s.works(t)
	s.end(t)
	wantNobodyBut(t)
}

// TestHostRootIsNeverSandboxed starts codespace as root of a user namespace whose
// root is the host's: a sandbox there could only be uid 0.
func TestHostRootIsNeverSandboxed(t *testing.T) {
	p := newPlace(t)
	run := p.codespace("run", "--", "touch", p.file("ran"))
	r := start(t, inside(t, `exec "$0" "$@"`, run))
	code := r.wait(t, time.Minute)
	if os.Geteuid() != 0 { // the control: this user may
		if code != 0 || !p.has("ran") {
			t.Errorf("a plain user as root of a user namespace: exit %d, %s", code, &r.stderr)
		}
		return
	}
	if code != 125 || !strings.Contains(r.stderr.String(), `step "identity"`) || p.has("ran") {
		t.Errorf("exit %d, ran: %v, stderr: %s", code, p.has("ran"), &r.stderr)
	}
	p.wantRunWorks(t)
}
