package doctor_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"codespace/tests/need"
)

// plainUID is a user that nobody else is; it needs no entry in /etc/passwd.
const plainUID = 61234

// shared holds what every test uses: the programs where each user can reach them,
// and the compiled filter.
var shared string

func TestMain(m *testing.M) {
	var err error
	if shared, err = os.MkdirTemp("/tmp", "codespace-test-bin-"); err == nil {
		err = os.Chmod(shared, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(shared)
	os.Exit(code)
}

var programs = sync.OnceValue(func() error {
	for _, name := range []string{"codespace", "codespace-runner", "codespace-helper"} {
		b, err := os.ReadFile(filepath.Join("../../bin", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(shared, name), b, 0o755)
		}
		if err != nil {
			return err
		}
	}
	return nil
})

var filter = sync.OnceValues(func() (string, error) {
	out := filepath.Join(shared, "filter")
	b, err := exec.Command("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", out, "testdata/filter.c").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, b)
	}
	return out, err
})

// place is where one test works, as one user.
type place struct {
	dir  string
	root bool // who acts
	path string
}

const (
	asRoot  = true
	asPlain = false
)

func newPlace(t *testing.T, root bool) *place {
	t.Helper()
	need.Binary(t, "codespace")
	need.UserNamespaces(t)
	if root {
		need.Root(t)
	} else if os.Geteuid() == 0 {
		need.Command(t, "setpriv")
	}
	must(t, programs())
	dir, err := os.MkdirTemp("/tmp", "codespace-test-doctor-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	p := &place{dir: dir, root: root, path: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, name := range []string{"ws", "state", "run", "home", "tmp"} {
		p.mkdir(t, name)
	}
	return p
}

func (p *place) file(name string) string { return filepath.Join(p.dir, name) }

// mkdir makes directories of the place, which belong to who acts.
func (p *place) mkdir(t *testing.T, name string) string {
	t.Helper()
	at := p.dir
	for _, part := range strings.Split(name, "/") {
		at = filepath.Join(at, part)
		if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
		p.give(t, at)
	}
	return at
}

func (p *place) give(t *testing.T, path string) {
	t.Helper()
	if !p.root && os.Geteuid() == 0 {
		must(t, os.Lchown(path, plainUID, plainUID))
	}
}

// script makes an executable of the place that prints its own name.
func (p *place) script(t *testing.T, name string) {
	t.Helper()
	p.mkdir(t, filepath.Dir(name))
	must(t, os.WriteFile(p.file(name), []byte("#!/bin/sh\necho \"${0##*/}\"\n"), 0o755))
	p.give(t, p.file(name))
}

// as is a command line run by who acts.
func (p *place) as(argv ...string) []string {
	if p.root || os.Geteuid() != 0 {
		return argv
	}
	id := strconv.Itoa(plainUID)
	return append([]string{"setpriv", "--reuid=" + id, "--regid=" + id, "--clear-groups", "--"}, argv...)
}

// result is how a command ended.
type result struct {
	code           int
	stdout, stderr string
}

// do runs a command line to its end, in the workspace and with a small environment.
func (p *place) do(t *testing.T, argv []string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.file("ws"), &stdout, &stderr
	cmd.Env = []string{"PATH=" + p.path, "HOME=" + p.file("home"), "XDG_STATE_HOME=" + p.file("state"), "XDG_RUNTIME_DIR=" + p.file("run"), "TMPDIR=" + p.file("tmp")}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func codespace(args ...string) []string {
	return append([]string{filepath.Join(shared, "codespace")}, args...)
}

// finding and diagnosis are the JSON of docs/doctor.md.
type finding struct {
	Name, State, Strength string
	Knob, Show, Fix       string
}

type diagnosis struct {
	Schema        int
	CanRun        bool `json:"can_run"`
	Strength      string
	UID           int
	Layers        []finding
	Circumstances []finding
	Proof         struct {
		Ran         bool
		Enforcement string
		Digest      string
		Receipt     []string
		Error       *struct{ Code, Message, Knob, Show, Fix string }
	}
	Tools []struct {
		Directory string
		Count     int
		Names     []string
		Flags     []string
		Note      string
	}
	ToolFlags []string `json:"tool_flags"`
}

// diagnose reads what a doctor command line answers and wants its exit status to
// agree.
func (p *place) diagnose(t *testing.T, argv []string) diagnosis {
	t.Helper()
	r := p.do(t, argv)
	var d diagnosis
	if err := json.Unmarshal([]byte(r.stdout), &d); err != nil {
		t.Fatalf("cannot read what %v answers: %v; exit status %d, stdout %q, stderr %q", argv, err, r.code, r.stdout, r.stderr)
	}
	if want := map[bool]int{true: 0, false: 1}[d.CanRun]; r.code != want {
		t.Errorf("exit status %d with can_run %v", r.code, d.CanRun)
	}
	return d
}

func find(list []finding, name string) finding {
	for _, f := range list {
		if f.Name == name {
			return f
		}
	}
	return finding{}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
