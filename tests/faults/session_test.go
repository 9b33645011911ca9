package faults_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// answerLimit is longer than any answer may take, time-outs of the product included.
const answerLimit = 75 * time.Second

// session is one client of codespace mcp: JSON-RPC, a message a line.
type session struct {
	*program
	in, out   *os.File // our ends of its standard input and output
	workspace string

	mu      sync.Mutex // guards what follows
	last    int
	waiting map[int]chan result // nil once the server has ended
}

// result is what a tool has answered; gone says that no answer came before the end.
type result struct {
	gone   bool
	failed bool           // a tool error
	fields map[string]any // structured content
}

func (r result) text(name string) string {
	s, _ := r.fields[name].(string)
	return s
}

// code is "" for what is not a tool error.
func (r result) code() string {
	if !r.failed {
		return ""
	}
	return r.text("code")
}

func (r result) String() string {
	b, err := json.Marshal(r.fields)
	if r.gone || err != nil {
		return "no answer"
	}
	return fmt.Sprintf("error=%v %s", r.failed, b)
}

// mcp starts a session and greets.
func (p place) mcp(t testing.TB) *session {
	t.Helper()
	s := p.silent(t)
	s.greet(t)
	return s
}

// silent starts a session in which nothing has been said yet.
func (p place) silent(t testing.TB) *session {
	t.Helper()
	return p.session(t, p.codespace("mcp"))
}

// withLog is silent with the reading end of the server's standard error.
func (p place) withLog(t testing.TB) (*session, *os.File) {
	t.Helper()
	log, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	cmd := p.codespace("mcp")
	cmd.Stderr = theirs
	return p.session(t, cmd), log
}

func (p place) session(t testing.TB, cmd *exec.Cmd) *session {
	t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout = theirIn, theirOut
	s := &session{in: in, out: out, waiting: map[int]chan result{}}
	s.program = start(t, cmd)
	theirIn.Close()
	theirOut.Close()
	t.Cleanup(func() { // before start's, which kills
		in.Close()
		select {
		case <-s.over:
		case <-time.After(20 * time.Second):
			t.Errorf("codespace mcp still runs 20 s after the end of its input: %v", below(s.pid()))
		}
		out.Close()
	})
	go s.receive(out)
	return s
}

// greet begins the session in the first workspace and returns the ids of all.
func (s *session) greet(t testing.TB) (ids []string) {
	t.Helper()
	hello := map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "faults", "version": "1"}}
	s.await(t, s.request("initialize", hello))
	s.say(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	info := s.call(t, "workspace_info", map[string]any{})
	list, _ := info.fields["workspaces"].([]any)
	for _, w := range list {
		fields, _ := w.(map[string]any)
		id, _ := fields["workspace_id"].(string)
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		t.Fatalf("workspace_info: %v; stderr: %s", info, &s.stderr)
	}
	s.workspace = ids[0]
	return ids
}

// receive hands answers to who waits for them, and at the end tells the rest.
func (s *session) receive(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var m struct {
			ID     int
			Result struct {
				IsError           bool
				StructuredContent map[string]any
			}
			Error any
		}
		if json.Unmarshal(line, &m) == nil {
			s.deliver(m.ID, result{failed: m.Result.IsError || m.Error != nil, fields: m.Result.StructuredContent})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, wait := range s.waiting {
		wait <- result{gone: true}
	}
	s.waiting = nil
}

func (s *session) deliver(id int, r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if wait, ok := s.waiting[id]; ok {
		delete(s.waiting, id)
		wait <- r
	}
}

// say writes one line. A server that is gone is no error here.
func (s *session) say(message map[string]any) {
	b, err := json.Marshal(message)
	if err != nil {
		panic(err) // plain values always marshal
	}
	s.in.Write(append(b, '\n'))
}

func (s *session) request(method string, params any) <-chan result {
	s.mu.Lock()
	s.last++
	id, wait := s.last, make(chan result, 1)
	if s.waiting == nil {
		wait <- result{gone: true}
	} else {
		s.waiting[id] = wait
	}
	s.mu.Unlock()
	s.say(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return wait
}

// send calls a tool without waiting for the answer.
func (s *session) send(tool string, arguments map[string]any) <-chan result {
	return s.request("tools/call", map[string]any{"name": tool, "arguments": arguments})
}

func (s *session) await(t testing.TB, wait <-chan result) result {
	t.Helper()
	select {
	case r := <-wait:
		return r
	case <-time.After(answerLimit):
		t.Fatalf("no answer within %v; stderr: %s", answerLimit, &s.stderr)
		return result{}
	}
}

func (s *session) call(t testing.TB, tool string, arguments map[string]any) result {
	t.Helper()
	return s.await(t, s.send(tool, arguments))
}

// begin asks for a command without waiting for the answer.
func (s *session) begin(argv ...string) <-chan result {
	return s.send("exec_command", map[string]any{"workspace_id": s.workspace, "command": argv})
}

// tryExec starts a command that may be started twice. While a lost process is being
// cleared away the answer may be to try again, or that nobody knows. The gateway
// gives a command of which nobody told it anything as long as promised to be gone,
// before it frees its lease.
func (s *session) tryExec(t testing.TB, argv ...string) result {
	t.Helper()
	var r result
	within(2*promised, func() bool {
		r = s.await(t, s.begin(argv...))
		return r.fields["retryable"] != true && r.text("dispatch_status") != "unknown"
	})
	return r
}

// exec starts a command that must start, and returns its process_id.
func (s *session) exec(t testing.TB, argv ...string) string {
	t.Helper()
	r := s.tryExec(t, argv...)
	if r.text("dispatch_status") != "confirmed" {
		t.Fatalf("exec_command %q: %v; stderr: %s", argv, r, &s.stderr)
	}
	return r.text("process_id")
}

func (s *session) status(t testing.TB, id string) result {
	t.Helper()
	return s.call(t, "process_status", map[string]any{"process_id": id})
}

// exited waits until a command has exited and returns its status.
func (s *session) exited(t testing.TB, id string, limit time.Duration) result {
	t.Helper()
	var r result
	if !within(limit, func() bool { r = s.status(t, id); return r.failed || r.text("state") == "exited" }) {
		t.Errorf("not exited within %v: %v", limit, r)
	}
	return r
}

// output waits for the next output from a cursor on.
func (s *session) output(t testing.TB, id string, cursor int) result {
	t.Helper()
	return s.call(t, "read_process", map[string]any{"process_id": id, "cursor": cursor, "wait_ms": 20000})
}

// started starts a command that prints "started" and waits for that.
func (s *session) started(t testing.TB, argv ...string) string {
	t.Helper()
	id := s.exec(t, argv...)
	r := s.output(t, id, 0)
	for range 3 { // a minute more: a busy machine is slow to start hundreds
		if !r.failed && r.text("chunk") == "" && r.text("state") == "running" {
			r = s.output(t, id, 0)
		}
	}
	if !strings.HasPrefix(r.text("chunk"), "started\n") {
		t.Fatalf("%q printed %v", argv, r)
	}
	return id
}

// works runs one command to its end and wants its output and its own status.
func (s *session) works(t testing.TB) {
	t.Helper()
	id := s.exec(t, "sh", "-c", "echo works; exit 3")
	if r := s.output(t, id, 0); r.text("chunk") != "works\n" {
		t.Errorf("output of a command after the fault: %v", r)
	}
	if r := s.exited(t, id, promised); r.text("termination") != "exited" || r.fields["exit_code"] != 3.0 {
		t.Errorf("status of a command after the fault: %v", r)
	}
}

// end closes the input and wants a clean exit.
func (s *session) end(t testing.TB) {
	t.Helper()
	s.in.Close()
	if code := s.wait(t, 20*time.Second); code != 0 {
		t.Errorf("codespace mcp exited with %d after the end of its input; stderr: %s", code, &s.stderr)
	}
}
