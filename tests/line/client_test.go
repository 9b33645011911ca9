package line_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"codespace/tests/need"
)

// session is an agent: one codespace mcp and the client that started it.
type session struct {
	t         testing.TB
	client    *client.Client
	cmd       *exec.Cmd
	stderr    notes
	workspace string // the id of the first one
	over      bool
}

// notes is what a program says on stderr, readable while it goes on.
type notes struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all.String()
}

// start serves dir. The session is closed with the test, if not before.
func start(t testing.TB, dir string, args ...string) *session {
	t.Helper()
	return open(t, nothing, append([]string{"-w", dir}, args...)...)
}

// startProbing is start with this test binary in view.
func startProbing(t testing.TB, dir string, args ...string) *session {
	t.Helper()
	return start(t, dir, append([]string{"--mount", self(t)}, args...)...)
}

func nothing(*exec.Cmd) {}

// open starts codespace mcp; prepare may change how.
func open(t testing.TB, prepare func(*exec.Cmd), args ...string) *session {
	t.Helper()
	s := &session{t: t}
	s.cmd = exec.Command(need.Binary(t, "codespace"), append([]string{"mcp"}, args...)...)
	s.cmd.Stderr = &s.stderr
	prepare(s.cmd)
	stdio := transport.NewStdioWithOptions(s.cmd.Path, nil, nil, transport.WithCommandFunc(
		func(context.Context, string, []string, []string) (*exec.Cmd, error) { return s.cmd, nil }))
	s.client = client.NewClient(stdio)
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	must(t, s.client.Start(context.Background()))
	t.Cleanup(s.close)
	var hello mcp.InitializeRequest
	hello.Params.ClientInfo = mcp.Implementation{Name: "line", Version: "1"}
	if _, err := s.client.Initialize(ctx, hello); err != nil {
		t.Fatalf("cannot initialize: %v; stderr: %s", err, s.stderr.String())
	}
	list, _ := s.call("workspace_info", nil).fields["workspaces"].([]any)
	if len(list) == 0 {
		t.Fatal("workspace_info lists no workspace")
	}
	s.workspace = answer{fields: list[0].(map[string]any)}.text("workspace_id")
	return s
}

// close ends the session as a client does, by the end of input, and wants exit 0
// soon enough for it not to have been signalled.
func (s *session) close() {
	s.t.Helper()
	if s.over {
		return
	}
	s.over = true
	began := time.Now()
	if err := s.client.Close(); err != nil {
		s.t.Errorf("codespace mcp at the end of input: %v; stderr: %s", err, s.stderr.String())
	}
	// The client sends SIGTERM after two seconds.
	if took := time.Since(began); took > 2*time.Second {
		s.t.Errorf("codespace mcp took %v to end", took)
	}
}

// answer is what a tool answered: the fields of its result or of its error.
type answer struct {
	fields  map[string]any
	isError bool
	said    string // the text block
}

// text is a field as it would be printed, "" where there is none.
func (a answer) text(key string) string {
	switch v := a.fields[key].(type) {
	case nil:
		return ""
	case float64:
		return fmt.Sprint(int64(v))
	default:
		return fmt.Sprint(v)
	}
}

func (a answer) number(key string) int64 {
	n, _ := a.fields[key].(float64)
	return int64(n)
}

func (a answer) below(key string) answer {
	fields, _ := a.fields[key].(map[string]any)
	return answer{fields: fields}
}

// fields is what an answer must hold; nil is for what must be absent.
type fields map[string]any

func (a answer) wants(t testing.TB, want fields) {
	t.Helper()
	for key, value := range want {
		if _, there := a.fields[key]; there == (value == nil) || value != nil && a.text(key) != fmt.Sprint(value) {
			t.Errorf("%s is %v, want %v, in %v", key, a.fields[key], value, a.fields)
		}
	}
}

// refused wants a tool error and checks its form.
func (a answer) refused(t testing.TB, code string) answer {
	t.Helper()
	if !a.isError || a.text("code") != code {
		t.Errorf("want the error %s, got %v", code, a.fields)
	}
	if a.text("message") == "" || a.fields["retryable"] == nil || !strings.HasPrefix(a.said, a.text("code")+": "+a.text("message")) {
		t.Errorf("the error is not complete: %v, text %q", a.fields, a.said)
	}
	return a
}

// ask calls a tool, from any goroutine.
func (s *session) ask(tool string, args map[string]any) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*soon)
	defer cancel()
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = tool, args
	res, err := s.client.CallTool(ctx, r)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w; stderr: %s", tool, err, s.stderr.String())
	}
	a := answer{isError: res.IsError}
	a.fields, _ = res.StructuredContent.(map[string]any)
	for _, c := range res.Content {
		if text, ok := c.(mcp.TextContent); ok {
			a.said += text.Text
		}
	}
	return a, nil
}

func (s *session) call(tool string, args map[string]any) answer {
	s.t.Helper()
	a, err := s.ask(tool, args)
	must(s.t, err)
	return a
}

// exec starts a command and has its handle or the error.
func (s *session) exec(argv ...string) answer {
	s.t.Helper()
	return s.call("exec_command", map[string]any{"workspace_id": s.workspace, "command": argv})
}

// started starts a command that must start, and is its handle.
func (s *session) started(argv ...string) string {
	s.t.Helper()
	a := s.exec(argv...)
	if a.isError || a.text("dispatch_status") != "confirmed" {
		s.t.Fatalf("cannot start %q: %v", argv, a.fields)
	}
	return a.text("process_id")
}

func (s *session) status(id string) answer {
	s.t.Helper()
	return s.call("process_status", map[string]any{"process_id": id})
}

// exited waits for the end of a process. There is no tool that waits for it.
func (s *session) exited(id string) (st answer) {
	s.t.Helper()
	eventually(s.t, 2*soon, id+" exits", func() bool {
		st = s.status(id)
		return st.text("state") == "exited"
	})
	return st
}

// page reads output once, exactly.
func (s *session) page(id string, cursor int64) (answer, []byte) {
	s.t.Helper()
	a := s.call("read_process", map[string]any{"process_id": id, "cursor": cursor, "max_bytes": 65536, "wait_ms": 20000, "encoding": "base64"})
	if a.isError {
		s.t.Fatalf("cannot read %s at %d: %v", id, cursor, a.fields)
	}
	chunk, err := base64.StdEncoding.DecodeString(a.text("chunk"))
	must(s.t, err)
	return a, chunk
}

// output reads from cursor to the end all that is kept.
func (s *session) output(id string, cursor int64) []byte {
	s.t.Helper()
	var all []byte
	for {
		a, chunk := s.page(id, cursor)
		all, cursor = append(all, chunk...), a.number("cursor")
		if a.text("eof") == "true" {
			return all
		}
	}
}

// until reads until the output holds text, and is the cursor after what was read.
func (s *session) until(id, text string) int64 {
	s.t.Helper()
	var all []byte
	deadline := time.Now().Add(soon)
	for cursor := int64(0); ; {
		a, chunk := s.page(id, cursor)
		all, cursor = append(all, chunk...), a.number("cursor")
		if bytes.Contains(all, []byte(text)) {
			return cursor
		}
		if a.text("eof") == "true" {
			s.t.Fatalf("the output ends without %q: %q", text, all)
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("not within %v: %q; there is %q", soon, text, all)
		}
	}
}

// run runs a command to its end: how it ended and what it said.
func (s *session) run(argv ...string) (answer, string) {
	s.t.Helper()
	id := s.started(argv...)
	out := s.output(id, 0)
	return s.exited(id), string(out)
}

// says runs a command that must succeed, and is what it said.
func (s *session) says(argv ...string) string {
	s.t.Helper()
	st, out := s.run(argv...)
	if st.text("exit_code") != "0" {
		s.t.Fatalf("%q ended with %v and said %q", argv, st.fields, out)
	}
	return out
}

// shell is an argv for a line of sh.
func shell(line string) []string { return []string{"sh", "-c", line} }

func (s *session) terminate(id string) {
	s.t.Helper()
	s.call("terminate_process", map[string]any{"process_id": id}).wants(s.t, fields{"ok": true})
}
