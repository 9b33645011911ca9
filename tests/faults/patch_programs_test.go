package faults_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"codespace/tests/need"
)

// failing are the programs with failpoints, made once for all tests.
var failing struct {
	once sync.Once
	dir  string
	err  error
}

// patchPrograms are all that take part in a patch.
var patchPrograms = append(slices.Clone(installed), "codespace-patch")

// failpointPrograms is the directory of the four programs, three of them built with
// failpoints. Where there is no go, somebody has built these in bin/failpoints.
func failpointPrograms(t testing.TB) string {
	t.Helper()
	helper := need.Binary(t, "codespace-helper")
	compiler, err := exec.LookPath("go")
	made := ""
	if err != nil {
		made = filepath.Dir(need.Binary(t, "failpoints/codespace"))
	}
	failing.once.Do(func() {
		if failing.dir, failing.err = os.MkdirTemp("", "failpoints-"); failing.err != nil {
			return
		}
		for _, name := range patchPrograms {
			if made != "" && name != "codespace-helper" {
				copyFile(t, filepath.Join(made, name), filepath.Join(failing.dir, name))
			}
		}
		copyFile(t, helper, filepath.Join(failing.dir, "codespace-helper"))
		if made == "" {
			build := exec.Command(compiler, "build", "-tags", "failpoints", "-buildvcs=false", "-o", failing.dir,
				"codespace/cmd/codespace", "codespace/cmd/codespace-runner", "codespace/cmd/codespace-patch")
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := build.CombinedOutput(); err != nil {
				failing.err = fmt.Errorf("%w: %s", err, out)
			}
		}
	})
	if failing.err != nil {
		t.Fatalf("cannot build with failpoints: %v", failing.err)
	}
	return failing.dir
}

// removeFailpointPrograms is for the end of all tests.
func removeFailpointPrograms() {
	if failing.dir != "" {
		os.RemoveAll(failing.dir)
	}
}

// patchPlace is a place with the files that the patch is for, and programs with
// failpoints of its own.
type patchPlace struct{ place }

func newPatchPlace(t testing.TB) patchPlace {
	t.Helper()
	p := patchPlace{newPlace(t)}
	p.plant(t)
	return p.withFailpoints(t)
}

// withFailpoints is the place with programs that nobody else uses.
func (p patchPlace) withFailpoints(t testing.TB) patchPlace {
	t.Helper()
	made := failpointPrograms(t)
	p.bin = t.TempDir()
	for _, name := range patchPrograms {
		if err := os.Link(filepath.Join(made, name), filepath.Join(p.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// step is one durable step that a program has reached.
type step struct {
	program string
	hit     int // from 1, over all processes of the program
	name    string
}

func (s step) String() string { return fmt.Sprintf("%s %d %s", s.program, s.hit, s.name) }

// does is the line of a failpoint at this step.
func (s step) does(action string) string { return fmt.Sprintf("%s %d %s\n", s.program, s.hit, action) }

// arm sets failpoints for programs that start from now on.
func (p patchPlace) arm(t testing.TB, lines ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.bin, "failpoint"), []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// steps are those that were reached.
func (p patchPlace) steps(t testing.TB) (steps []step) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(p.bin, "failpoint.log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var s step
		if _, err := fmt.Sscanf(line, "%s %d", &s.program, &s.hit); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		s.name = strings.TrimSpace(line[len(fmt.Sprintf("%s %d ", s.program, s.hit)):])
		steps = append(steps, s)
	}
	return steps
}

func (p patchPlace) reached(t testing.TB, s step) bool {
	t.Helper()
	for _, r := range p.steps(t) {
		if r.program == s.program && r.hit == s.hit {
			return true
		}
	}
	return false
}

// wantReached is the control of every case: the fault has happened.
func (p patchPlace) wantReached(t testing.TB, s step) {
	t.Helper()
	if !within(answerLimit, func() bool { return p.reached(t, s) }) {
		t.Fatalf("control: %v is not reached: %v", s, p.steps(t))
	}
}

// stepsOf are the steps of a patch where nothing fails.
func stepsOf(t testing.TB, patch string, patched tree) []step {
	t.Helper()
	p := newPatchPlace(t)
	s := p.mcp(t)
	if r := s.patch(t, patch, "undisturbed"); said(r) != applied {
		t.Fatalf("control: the patch is answered with %v; stderr: %s", r, &s.stderr)
	}
	p.wantTree(t, applied, patched)
	s.end(t)
	return p.steps(t)
}

// undisturbed are the steps of thePatch where nothing fails.
func undisturbed(t testing.TB) []step {
	t.Helper()
	steps := stepsOf(t, thePatch, after)
	if len(steps) < 30 {
		t.Fatalf("control: the patch has the steps %v", steps)
	}
	return steps
}

var everyStep = flag.Bool("every-step", false, "do also what takes long at every step, and not only at some")

// each is each nth step, beginning with the first.
func each(n int, steps []step) (out []step) {
	for i, s := range steps {
		if i%n == 0 || *everyStep {
			out = append(out, s)
		}
	}
	return out
}

// shared are all steps for root, and some for a plain user, whose patches go the same way.
func shared(steps []step) []step {
	if os.Geteuid() == 0 {
		return steps
	}
	return each(6, steps)
}

// of are the steps of a program, by name if one is given.
func of(steps []step, program string, names ...string) (out []step) {
	for _, s := range steps {
		if s.program == program && (len(names) == 0 || s.name == names[0]) {
			out = append(out, s)
		}
	}
	return out
}
