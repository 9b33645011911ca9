package faults_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"codespace/tests/need"
)

// program names, as installed side by side.
var installed = []string{"codespace", "codespace-runner", "codespace-helper"}

// ownPrograms gives a place copies of the programs that a test may spoil.
func ownPrograms(t testing.TB) place {
	t.Helper()
	p := newPlace(t)
	p.bin = filepath.Join(filepath.Dir(p.workspace), "bin")
	if err := os.Mkdir(p.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range installed {
		copyFile(t, need.Binary(t, name), filepath.Join(p.bin, name))
	}
	return p
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestProgramIsUnusable spoils one program of the installation: nothing runs, with
// or without a sandbox, and it works again without a restart.
func TestProgramIsUnusable(t *testing.T) {
	spoil := map[string]func(name string) error{
		"missing":        func(name string) error { return os.Rename(name, name+".away") },
		"not executable": func(name string) error { return os.Chmod(name, 0o644) },
		"another's":      func(name string) error { return replace(name, "#!/bin/sh\nexit 0\n") },
		"garbage":        func(name string) error { return replace(name, "garbage") },
		"hanging up":     func(name string) error { return replace(name, "#!/bin/sh\nkill -9 $$\n") },
	}
	for _, name := range installed[1:] {
		for how, do := range spoil {
			t.Run(name+" "+how, func(t *testing.T) {
				p := ownPrograms(t)
				s := p.mcp(t)
				whole := filepath.Join(p.bin, name)
				if err := do(whole); err != nil {
					t.Fatal(err)
				}
				r := p.run(t, "touch", "ran")
				if r.status() != 125 || p.has("ran") {
					t.Errorf("codespace run: exit %d, ran: %v, stderr: %s", r.status(), p.has("ran"), &r.stderr)
				}
				answer := s.await(t, s.begin("touch", "ran"))
				if code := answer.code(); code != "SANDBOX_UNAVAILABLE" && code != "RUNNER_UNAVAILABLE" || p.has("ran") {
					t.Errorf("exec_command, ran: %v, %v", p.has("ran"), answer)
				}
				wantNobodyBut(t, append(anatomyOf(s.pid()).outside(factory), s.pid())...)
				os.Remove(whole)
				copyFile(t, need.Binary(t, name), whole)
				s.works(t) // the control
				s.end(t)
			})
		}
	}
}

func replace(name, content string) error {
	if err := os.Remove(name); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(content), 0o755)
}
