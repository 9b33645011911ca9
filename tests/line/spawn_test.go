package line_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestArgvOf1MiB(t *testing.T) {
	s := start(t, workspace(t))
	argv := shell("echo $#; printf %s \"$16383\" | wc -c; printf %s \"$1\"")
	argv = append(argv, "sh")
	for range 16384 {
		argv = append(argv, strings.Repeat("x", 63))
	}
	argv[4] = "first"
	if out := s.says(argv...); !strings.HasPrefix(out, "16384\n") || !strings.HasSuffix(out, "first") {
		t.Errorf("the command sees %.100q", out)
	}
}

// badPrograms makes every kind of thing that cannot be started, in dir.
func badPrograms(t *testing.T, dir string) {
	t.Helper()
	write(t, dir, map[string]string{
		"plain":    "#!/bin/sh\necho ran\n",
		"script":   "#!/no/such/interpreter\n",
		"garbage":  "neither a program nor a script\n",
		"dir/file": "",
	})
	must(t, os.Chmod(filepath.Join(dir, "script"), 0o755))
	must(t, os.Chmod(filepath.Join(dir, "garbage"), 0o755))
	program, err := os.ReadFile(inside(t, "env"))
	must(t, err)
	loader := []byte("/lib64/ld-linux-x86-64.so.2")
	if !bytes.Contains(program, loader) {
		t.Fatalf("env does not name the loader %s", loader)
	}
	strange := bytes.Replace(program, loader, []byte("/lib64/ld-absent-x86-6.so.2"), 1)
	must(t, os.WriteFile(filepath.Join(dir, "loaderless"), strange, 0o755))
}

// unstartable is what cannot be started, why, and the exit status of codespace
// run: 0 where one of that reason is enough, or cannot be handed even to that.
var unstartable = []struct {
	argv   []string
	reason string
	code   int
}{
	{[]string{"no-such-program"}, "not found", 127},
	{[]string{"/no/such/program"}, "not found", 0},
	{[]string{"./plain/below"}, "not found", 0},
	{[]string{"./plain"}, "not executable", 126},
	{[]string{"./dir"}, "is a directory", 126},
	{[]string{"/usr"}, "is a directory", 0},
	{[]string{"./script"}, "missing interpreter", 126},
	{[]string{"./loaderless"}, "missing interpreter", 0},
	{[]string{"./garbage"}, "bad format", 126},
	{[]string{"true", strings.Repeat("x", 200<<10)}, "too long", 0},
}

func TestWhatCannotBeStarted(t *testing.T) {
	dir := workspace(t)
	badPrograms(t, dir)
	s := start(t, dir)
	for _, tt := range unstartable {
		a := s.exec(tt.argv...).refused(t, "PROCESS_SPAWN_FAILED")
		a.wants(t, fields{"process_id": nil, "dispatch_status": nil, "retryable": false})
		a.below("details").wants(t, fields{"reason": tt.reason})
		if m := a.text("message"); !strings.Contains(m, tt.reason) || !strings.Contains(m, tt.argv[0]) {
			t.Errorf("%.40q: the message %q does not say that it is %q", tt.argv, m, tt.reason)
		}
	}
	// There were more of them than a workspace may have processes, and each held
	// the lease: neither is held by any now.
	if out := s.says("echo", "on"); out != "on\n" {
		t.Errorf("after the failures: %q", out)
	}
}

func TestRunOfWhatCannotBeStarted(t *testing.T) {
	dir := workspace(t)
	badPrograms(t, dir)
	for _, tt := range unstartable {
		if tt.code == 0 {
			continue
		}
		r := run(t, dir, append([]string{"--"}, tt.argv...)...).wants(t, tt.code)
		if !strings.Contains(r.stderr, tt.argv[0]) || !strings.Contains(r.stderr, tt.reason) || r.stdout != "" {
			t.Errorf("%q: stderr %q, stdout %q", tt.argv, r.stderr, r.stdout)
		}
	}
}

// A name without a slash is looked for in PATH, never in the workspace.
func TestWorkspaceIsNotOnThePath(t *testing.T) {
	dir := workspace(t)
	write(t, dir, map[string]string{"true": "#!/bin/sh\nexit 3\n", "only-here": "#!/bin/sh\nexit 3\n"})
	for _, name := range []string{"true", "only-here"} {
		must(t, os.Chmod(filepath.Join(dir, name), 0o755))
	}
	s := start(t, dir)
	for name, want := range map[string]string{"true": "0", "./true": "3", dir + "/true": "3"} {
		if st, _ := s.run(name); st.text("exit_code") != want {
			t.Errorf("%s: %v", name, st.fields)
		}
	}
	s.exec("only-here").below("details").wants(t, fields{"reason": "not found"})
}

// Of the commands that have ended the last 64 are kept.
func TestManyStarts(t *testing.T) {
	s := start(t, workspace(t))
	ids := make([]string, 70)
	for i := range ids {
		ids[i] = s.started("echo", fmt.Sprint(i))
		s.exited(ids[i]).wants(t, fields{"exit_code": 0})
	}
	for i, id := range ids {
		if i < len(ids)-64 {
			s.status(id).refused(t, "PROCESS_NOT_FOUND")
			continue
		}
		if out := string(s.output(id, 0)); out != fmt.Sprintln(i) {
			t.Errorf("the output of %d is %q", i, out)
		}
	}
}
