package sandbox_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codespace/policy"
	"codespace/sandbox"
	"codespace/tests/need"
)

// command is one that runs in a cell.
type command struct {
	t *testing.T
	*sandbox.Cell
	stdin  *os.File
	stdout *bufio.Reader // and stderr
}

// start launches a script in a cell of the sandbox.
func (b box) start(writable bool, script string, args ...string) command {
	b.t.Helper()
	c, err := b.launch(b.cell(writable), append([]string{"/bin/sh", "-c", script}, args...))
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func (b box) launch(cell *sandbox.Cell, argv []string) (command, error) {
	b.t.Helper()
	in, stdin, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { stdin.Close(); stdout.Close() })
	err = cell.Launch(sandbox.Launch{
		Argv: argv, Env: sandbox.Environment(policy.Workspace{}, false), Cwd: b.plan.Root.Path, Files: [3]*os.File{in, out, out},
	})
	in.Close()
	out.Close()
	return command{b.t, cell, stdin, bufio.NewReader(stdout)}, err
}

// line is the next line of the output, without its end.
func (c command) line() string {
	c.t.Helper()
	s, err := c.stdout.ReadString('\n')
	if err != nil {
		c.t.Errorf("the output ends after %q: %v", s, err)
	}
	return strings.TrimSuffix(s, "\n")
}

// exit is the argv's own end, after the tree's.
func (c command) exit() (exited, empty sandbox.Event) {
	c.t.Helper()
	exited, err := c.Next()
	if err != nil || exited.Empty {
		c.t.Fatalf("%+v, %v", exited, err)
	}
	if empty, err = c.Next(); err != nil || !empty.Empty {
		c.t.Fatalf("%+v, %v", empty, err)
	}
	if _, err := c.Next(); err != io.EOF {
		c.t.Errorf("after its end the cell says %v", err)
	}
	c.Gone()
	return exited, empty
}

// run runs a script to its end and returns its output and exit status.
func (b box) run(writable bool, script string, args ...string) (string, int) {
	b.t.Helper()
	c := b.start(writable, script, args...)
	c.stdin.Close()
	out, err := io.ReadAll(c.stdout)
	if err != nil {
		b.t.Fatal(err)
	}
	exited, _ := c.exit()
	c.Close()
	return string(out), exited.Status.ExitStatus()
}

// says runs a script that must succeed and print exactly that.
func (b box) says(want, script string, args ...string) {
	b.t.Helper()
	if got, status := b.run(true, script, args...); got != want || status != 0 {
		b.t.Errorf("%s: %q with status %d, want %q", script, got, status, want)
	}
}

// probe is testdata/probe.c, built into a workspace.
func probe(t *testing.T, dir string) string {
	t.Helper()
	binary := filepath.Join(dir, "probe")
	build := exec.Command(need.Command(t, "gcc"), "-Wall", "-Wextra", "-Werror", "-O1", "-D_GNU_SOURCE", "-o", binary, "testdata/probe.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build testdata/probe.c: %v\n%s", err, out)
	}
	return binary
}

// marked are the host's processes with that text in their arguments.
func marked(text string) []string {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []string
	for _, name := range lines {
		if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, []byte(text)) {
			found = append(found, name+" "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return found
}

// layers tells whether a receipt names a layer that begins so.
func layers(r sandbox.Receipt, prefix string) bool {
	return slices.ContainsFunc(r.Layers, func(l string) bool { return strings.HasPrefix(l, prefix) })
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(bytes.TrimSpace(b))
}
