package line_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"codespace/tests/need"
)

// wired is codespace mcp spoken to by hand: what a well-behaved client never sends.
type wired struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *os.File
	lines  *bufio.Reader
	stderr notes
	over   bool // it has been waited for
}

// message is one answer, by hand.
type message struct {
	ID     json.RawMessage `json:"id"`
	Result struct {
		IsError    bool           `json:"isError"`
		Structured map[string]any `json:"structuredContent"`
	} `json:"result"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (m message) answer() answer {
	return answer{fields: m.Result.Structured, isError: m.Result.IsError}
}

func wire(t testing.TB, args ...string) *wired {
	t.Helper()
	w := &wired{t: t, cmd: exec.Command(need.Binary(t, "codespace"), append([]string{"mcp"}, args...)...)}
	w.cmd.Stderr = &w.stderr
	var err error
	w.in, err = w.cmd.StdinPipe()
	must(t, err)
	out, err := w.cmd.StdoutPipe()
	must(t, err)
	w.out = out.(*os.File)
	w.lines = bufio.NewReader(out)
	must(t, w.cmd.Start())
	t.Cleanup(func() { w.cmd.Process.Kill() })
	return w
}

const hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}` +
	"\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// calling is a line that calls a tool; id is a number.
func calling(id int, tool string, args map[string]any) string {
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": args}})
	if err != nil {
		panic(err) // plain values always marshal
	}
	return string(b) + "\n"
}

func (w *wired) send(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, text); err != nil {
		w.t.Fatalf("cannot send: %v; stderr %q", err, w.stderr.String())
	}
}

// next is the next answer, false at the end of them.
func (w *wired) next() (message, bool) {
	w.t.Helper()
	var m message
	must(w.t, w.out.SetReadDeadline(time.Now().Add(2*soon)))
	line, err := w.lines.ReadString('\n')
	if err == io.EOF && line == "" {
		return m, false
	}
	must(w.t, err)
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		w.t.Fatalf("an answer that is no JSON: %q", line)
	}
	return m, true
}

// answered waits for the answer to a request, whatever comes before.
func (w *wired) answered(id any) message {
	w.t.Helper()
	want, err := json.Marshal(id)
	must(w.t, err)
	for {
		m, more := w.next()
		if !more {
			w.t.Fatalf("no answer to %v; stderr %q", id, w.stderr.String())
		}
		if string(m.ID) == string(want) {
			return m
		}
	}
}

// end closes the input and has the answers that still come, by id, and the exit
// status.
func (w *wired) end() (map[string]message, int) {
	w.t.Helper()
	must(w.t, w.in.Close())
	rest := map[string]message{}
	for {
		m, more := w.next()
		if !more {
			return rest, exitCode(w.t, w.cmd.Wait())
		}
		if _, again := rest[string(m.ID)]; again && string(m.ID) != "null" {
			w.t.Errorf("two answers to %s", m.ID)
		}
		rest[string(m.ID)] = m
	}
}

// wantsExit checks the exit status of an end.
func (w *wired) wantsExit(code, want int) {
	w.t.Helper()
	if code != want {
		w.t.Errorf("exit status %d, want %d; stderr %q", code, want, w.stderr.String())
	}
}

// config writes a registry that trusts nobody and is its path.
func config(t testing.TB, format string, args ...any) string {
	t.Helper()
	path := t.TempDir() + "/codespace.toml"
	must(t, os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o600))
	return path
}
