package line_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// dialogue is an agent at the terminal of a program: it types once it has seen
// what it waits for, never after a time.
type dialogue struct {
	s      *session
	id     string
	cursor int64
	unread string // said, and not expected yet
	all    string
}

func (s *session) converse(argv ...string) *dialogue {
	s.t.Helper()
	return &dialogue{s: s, id: s.terminal(argv...)}
}

// expect waits for text and is what came before it; what follows is still unread.
func (d *dialogue) expect(text string) string {
	d.s.t.Helper()
	for began, over := time.Now(), false; ; over = d.more() {
		if before, after, found := strings.Cut(d.unread, text); found {
			d.unread = after
			return before
		}
		if over || time.Since(began) > soon {
			d.s.t.Fatalf("no %q, but %q; at the end of the output: %v; all of it: %q", text, d.unread, over, d.all)
		}
	}
}

// more reads on and reports whether that was the end.
func (d *dialogue) more() bool {
	d.s.t.Helper()
	a, chunk := d.s.page(d.id, d.cursor)
	d.cursor, d.unread, d.all = a.number("cursor"), d.unread+string(chunk), d.all+string(chunk)
	return a.text("eof") == "true"
}

func (d *dialogue) types(data string) {
	d.s.t.Helper()
	d.s.types(d.id, data).wants(d.s.t, fields{"accepted_bytes": len(data)})
}

// answers is expect, then types.
func (d *dialogue) answers(prompt, data string) {
	d.s.t.Helper()
	d.expect(prompt)
	d.types(data)
}

// ends waits for the program to end by itself.
func (d *dialogue) ends(code int) {
	d.s.t.Helper()
	for began := time.Now(); !d.more(); {
		if time.Since(began) > soon {
			d.s.t.Fatalf("it does not end; it said %q", d.all)
		}
	}
	d.s.exited(d.id).wants(d.s.t, fields{"termination": "exited", "exit_code": code})
}

// heard is what a command says until text, or until its end where text is "". It
// may be called from any goroutine.
func (s *session) heard(id, text string) (string, error) {
	said := ""
	for cursor, began := int64(0), time.Now(); time.Since(began) < 2*soon; {
		a, err := s.ask("read_process", map[string]any{"process_id": id, "cursor": cursor, "wait_ms": 20000})
		if err != nil || a.isError {
			return said, fmt.Errorf("cannot read %s: %v %v", id, err, a.fields)
		}
		said, cursor = said+a.text("chunk"), a.number("cursor")
		switch over := a.text("eof") == "true"; {
		case text != "" && strings.Contains(said, text), text == "" && over:
			return said, nil
		case over:
			return said, fmt.Errorf("the output ends without %q: %q", text, said)
		}
	}
	return said, fmt.Errorf("%s does not say %q, but %q", id, text, said)
}

// dispatch starts a command with args besides its argv, from any goroutine.
func (s *session) dispatch(args map[string]any, argv ...string) (string, error) {
	call := map[string]any{"workspace_id": s.workspace, "command": argv}
	for key, value := range args {
		call[key] = value
	}
	a, err := s.ask("exec_command", call)
	if err == nil && (a.isError || a.text("dispatch_status") != "confirmed") {
		err = fmt.Errorf("cannot start %q: %v", argv, a.fields)
	}
	return a.text("process_id"), err
}

// atOnce does something n times at the same time.
func atOnce(t testing.TB, n int, do func(i int) error) {
	t.Helper()
	results := make(chan error)
	for i := range n {
		go func() { results <- do(i) }()
	}
	var all error
	for range n {
		all = errors.Join(all, <-results)
	}
	must(t, all)
}

// crowded serves dir as site, with that many live processes, and beside it other.
func crowded(t testing.TB, dir string, processes int) *session {
	t.Helper()
	s := open(t, nothing, "--config", crowd(t, dir, processes))
	s.workspace = "site"
	return s
}

// crowd is the registry of such an agent.
func crowd(t testing.TB, dir string, processes int) string {
	t.Helper()
	return config(t, `
[state]
dir = %q
[workspaces.other]
root = %q
profile = "workspace-write"
[workspaces.other.limits]
enforcement = "best-effort"
[workspaces.site]
root = %q
profile = "workspace-write"
[workspaces.site.limits]
processes = %d
enforcement = "best-effort"
`, t.TempDir()+"/state", workspace(t), dir, processes)
}

// kernelState is what proc(5) has of a process in fields 3 (state), 5 (process
// group) and 8 (the group in the foreground of its terminal).
func kernelState(t testing.TB, pid string) (state, group, foreground string) {
	t.Helper()
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	must(t, err)
	words := strings.Fields(string(b)[strings.LastIndexByte(string(b), ')')+1:])
	return words[0], words[2], words[5]
}
