package line_test

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"testing"

	"codespace/tests/need"
)

// result is how one codespace run ended; code is -1 where a signal ended it.
type result struct {
	code           int
	stdout, stderr string
}

// command is codespace run on dir; args are its flags and, after "--", the argv.
func command(t testing.TB, dir string, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), need.Binary(t, "codespace"), append([]string{"run", "-w", dir}, args...)...)
}

// finish runs cmd to its end with what streams are not set yet.
func finish(t testing.TB, cmd *exec.Cmd) result {
	t.Helper()
	var out, err bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &err
	}
	code := exitCode(t, cmd.Run())
	return result{code, out.String(), err.String()}
}

func exitCode(t testing.TB, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		return exit.ExitCode()
	}
	return 0
}

// run is codespace run from start to end.
func run(t testing.TB, dir string, args ...string) result {
	t.Helper()
	return finish(t, command(t, dir, args...))
}

func (r result) wants(t testing.TB, code int) result {
	t.Helper()
	if r.code != code {
		t.Errorf("exit status is %d, want %d; stdout %.200q, stderr %.600q", r.code, code, r.stdout, r.stderr)
	}
	return r
}

// live is a codespace run that goes on: its stdout can be read, its end awaited.
type live struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdout io.ReadCloser
	stderr notes
}

func background(t testing.TB, cmd *exec.Cmd) *live {
	t.Helper()
	l := &live{t: t, cmd: cmd}
	cmd.Stderr = &l.stderr
	var err error
	l.stdout, err = cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return l
}

// line reads one line of stdout.
func (l *live) line() string {
	l.t.Helper()
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := l.stdout.Read(b); err != nil {
			l.t.Fatalf("stdout ends after %q: %v; stderr %q", line, err, l.stderr.String())
		}
		if b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}

// end reads what is left of stdout and waits for the end.
func (l *live) end() result {
	l.t.Helper()
	rest, err := io.ReadAll(l.stdout)
	must(l.t, err)
	code := exitCode(l.t, l.cmd.Wait())
	return result{code, string(rest), l.stderr.String()}
}
