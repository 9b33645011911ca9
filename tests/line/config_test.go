package line_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"codespace/tests/need"
)

// registry is a file of one workspace with a profile.
func registry(t testing.TB, root, profile string) (file, state string) {
	t.Helper()
	state = t.TempDir() + "/state"
	return config(t, `
[state]
dir = %q
[workspaces.site]
root = %q
profile = %q
[workspaces.site.limits]
processes = 3
enforcement = "best-effort"
`, state, root, profile), state
}

func TestReadOnlyProfile(t *testing.T) {
	dir := workspace(t)
	write(t, dir, map[string]string{"there": "before\n"})
	file, _ := registry(t, dir, "read-only")
	s := open(t, nothing, "--config", file)
	if s.workspace != "site" {
		t.Errorf("the workspace is %q", s.workspace)
	}
	if out := s.says("cat", "there"); out != "before\n" {
		t.Errorf("the workspace holds %q", out)
	}
	_, out := s.run(shell("echo after > there; echo after > new; rm there; chmod 777 .; mkdir d; ln there l")...)
	if strings.Count(out, "Read-only file system") != 6 || contents(t, dir+"/there") != "before\n" {
		t.Errorf("writes are answered %q", out)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the workspace holds %v, %v", entries, err)
	}
	var ids []string
	for range 3 { // no lease: they run together, up to the limit
		ids = append(ids, s.started("sleep", "300"))
	}
	full := s.exec("true").refused(t, "PROCESS_LIMIT")
	full.wants(t, fields{"retryable": true, "process_id": nil})
	full.below("details").wants(t, fields{"limit": 3})
	s.terminate(ids[0])
	s.exited(ids[0])
	s.says("true")
	for _, id := range ids[1:] {
		s.terminate(id)
	}
}

func TestStateDirectoryHasOneUser(t *testing.T) {
	file, state := registry(t, workspace(t), "workspace-write")
	s := open(t, nothing, "--config", file)
	second := wire(t, "--config", file)
	if _, code := second.end(); code != 1 || !strings.Contains(second.stderr.String(), state) {
		t.Errorf("the second ends with %d and says %q", code, second.stderr.String())
	}
	s.says("true") // and has not disturbed the first
	s.close()
	open(t, nothing, "--config", file).says("true")
}

func TestTwentyStartsAtOnce(t *testing.T) {
	file, state := registry(t, workspace(t), "workspace-write")
	all := make([]*wired, 20)
	for i := range all {
		all[i] = wire(t, "--config", file)
	}
	// None ends while its input is open, but those that may not serve.
	served := 0
	for _, w := range all {
		w.in.Write([]byte(hello)) // to one that has ended already there is no way
		if m, more := w.next(); more {
			served++
			if string(m.ID) != `"hello"` || m.Error != nil {
				t.Errorf("answer %+v", m)
			}
			continue
		}
		if code := exitCode(t, w.cmd.Wait()); code != 1 || !strings.Contains(w.stderr.String(), state) {
			t.Errorf("one ends with %d and says %q", code, w.stderr.String())
		}
		w.over = true
	}
	if served != 1 {
		t.Errorf("%d of %d serve", served, len(all))
	}
	for _, w := range all {
		if !w.over {
			_, code := w.end()
			w.wantsExit(code, 0)
		}
	}
	open(t, nothing, "--config", file).says("true")
}

func TestEnvironmentsThatAreNotBuilt(t *testing.T) {
	for _, kind := range []string{"container", "remote"} {
		dir := workspace(t)
		s := open(t, nothing, "--config", config(t, `
[state]
dir = %q
[environments.far]
kind = %q
[workspaces.site]
root = %q
profile = "workspace-write"
environment = "far"
`, t.TempDir()+"/state", kind, dir))
		s.exec("touch", "made").refused(t, "RUNNER_UNAVAILABLE")
		s.call("workspace_info", map[string]any{"workspace_id": "site"}).below("execution").wants(t, fields{"available": false})
		if !absent(dir + "/made") {
			t.Errorf("%s: the command ran", kind)
		}
	}
}

func TestConfigurationErrors(t *testing.T) {
	state, root := t.TempDir()+"/state", workspace(t)
	good := fmt.Sprintf("[state]\ndir = %q\n[workspaces.site]\nroot = %q\nprofile = \"read-only\"\n", state, root)
	for name, tt := range map[string]struct{ text, at string }{
		"unknown key":     {good + "colour = 1\n", "6:1"},
		"wrong type":      {good + "network = true\n", "6:11"},
		"no TOML":         {good + "network = \n", "6:"},
		"network enabled": {good + "network = \"enabled\"\n", "6:11"},
		"bad size":        {good + "[workspaces.site.limits]\nmemory = \"2 gigs\"\n", "7:10"},
		"no state":        {"[workspaces.site]\nroot = \"/srv/x\"\nprofile = \"read-only\"\n", "1:1"},
	} {
		file := config(t, "%s", tt.text)
		w := wire(t, "--config", file)
		if _, code := w.end(); code != 1 || !strings.Contains(w.stderr.String(), file+":"+tt.at) {
			t.Errorf("%s: exit status %d, no %s in %q", name, code, tt.at, w.stderr.String())
		}
	}
	open(t, nothing, "--config", config(t, "%s", good)) // the control: what is good loads
	loose := config(t, "%s", good)
	must(t, os.Chmod(loose, 0o666))
	w := wire(t, "--config", loose)
	if _, code := w.end(); code != 1 || !strings.Contains(w.stderr.String(), loose) {
		t.Errorf("a file that anybody may write: exit status %d, %q", code, w.stderr.String())
	}
}

// An empty variable must not turn a configuration into the current directory.
func TestEmptyConfigIsRefused(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), need.Binary(t, "codespace"), "mcp", "--config", "")
	cmd.Dir = workspace(t)
	if r := finish(t, cmd).wants(t, 1); !strings.Contains(r.stderr, "--config") {
		t.Errorf("stderr %q", r.stderr)
	}
}
