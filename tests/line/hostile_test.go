package line_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

type object = map[string]any

// badCalls are calls that must be refused.
var badCalls = map[string]struct {
	tool, code string
	args       object
}{
	"no such workspace":    {"exec_command", "WORKSPACE_NOT_FOUND", object{"workspace_id": "other", "command": touching}},
	"a path as workspace":  {"exec_command", "WORKSPACE_NOT_FOUND", object{"workspace_id": "/tmp", "command": touching}},
	"no workspace":         {"exec_command", "INVALID_ARGUMENT", object{"command": touching}},
	"no command":           {"exec_command", "INVALID_ARGUMENT", object{"workspace_id": "ws"}},
	"empty argv":           {"exec_command", "INVALID_COMMAND", object{"workspace_id": "ws", "command": []string{}}},
	"empty name":           {"exec_command", "INVALID_COMMAND", object{"workspace_id": "ws", "command": []string{""}}},
	"NUL in the name":      {"exec_command", "INVALID_COMMAND", object{"workspace_id": "ws", "command": []string{"touch\x00", "made"}}},
	"NUL in an argument":   {"exec_command", "INVALID_COMMAND", object{"workspace_id": "ws", "command": []string{"touch", "made\x00"}}},
	"NUL elsewhere":        {"exec_command", "INVALID_ARGUMENT", object{"workspace_id": "ws\x00", "command": touching}},
	"a line as command":    {"exec_command", "INVALID_ARGUMENT", object{"workspace_id": "ws", "command": "touch made"}},
	"a number in argv":     {"exec_command", "INVALID_ARGUMENT", object{"workspace_id": "ws", "command": []any{"touch", 1}}},
	"a number for a name":  {"exec_command", "INVALID_ARGUMENT", object{"workspace_id": 1, "command": touching}},
	"null":                 {"exec_command", "INVALID_ARGUMENT", object{"workspace_id": "ws", "command": nil}},
	"a key in other case":  {"exec_command", "INVALID_ARGUMENT", object{"Workspace_id": "ws", "command": touching}},
	"too many arguments":   {"exec_command", "INVALID_COMMAND", object{"workspace_id": "ws", "command": make([]string, 40000)}},
	"too much in argv":     {"exec_command", "INVALID_COMMAND", object{"workspace_id": "ws", "command": []string{"true", strings.Repeat("x", 3<<20)}}},
	"negative cursor":      {"read_process", "INVALID_ARGUMENT", object{"process_id": "proc_x", "cursor": -1}},
	"half a byte":          {"read_process", "INVALID_ARGUMENT", object{"process_id": "proc_x", "cursor": 1.5}},
	"a cursor in words":    {"read_process", "INVALID_ARGUMENT", object{"process_id": "proc_x", "cursor": "0"}},
	"too long a wait":      {"read_process", "INVALID_ARGUMENT", object{"process_id": "proc_x", "wait_ms": 20001}},
	"an empty page":        {"read_process", "INVALID_ARGUMENT", object{"process_id": "proc_x", "max_bytes": 0}},
	"too large a page":     {"read_process", "INVALID_ARGUMENT", object{"process_id": "proc_x", "max_bytes": 65537}},
	"an unknown encoding":  {"read_process", "INVALID_ARGUMENT", object{"process_id": "proc_x", "encoding": "hex"}},
	"NUL in a handle":      {"process_status", "INVALID_ARGUMENT", object{"process_id": "proc_\x00"}},
	"no handle":            {"terminate_process", "INVALID_ARGUMENT", object{}},
	"a handle of nothing":  {"terminate_process", "PROCESS_NOT_FOUND", object{"process_id": "../../etc"}},
	"a workspace of none":  {"workspace_info", "WORKSPACE_NOT_FOUND", object{"workspace_id": ""}},
	"something for nobody": {"workspace_info", "INVALID_ARGUMENT", object{"path": "/"}},
}

var touching = []string{"touch", "made"}

func TestCallsThatAreRefused(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	for name, tt := range badCalls {
		t.Run(name, func(t *testing.T) { s.call(tt.tool, tt.args).refused(t, tt.code) })
	}
	for _, key := range []string{"cwd", "env", "timeout", "tty_size", "environment_id", "network", "profile", "approved", "__proto__", ""} {
		a := s.call("exec_command", object{"workspace_id": "ws", "command": touching, key: "x"}).refused(t, "INVALID_ARGUMENT")
		if !strings.Contains(a.text("message"), key) {
			t.Errorf("the unknown argument %q is not named: %v", key, a.fields)
		}
	}
	if !absent(dir + "/made") {
		t.Error("a refused command ran")
	}
	if a, err := s.ask("no_such_tool", nil); err == nil {
		t.Errorf("an unknown tool answers %v", a.fields)
	}
	s.says(touching...) // the control, and the session goes on
	if absent(dir + "/made") {
		t.Error("control: the command does not touch what is looked for")
	}
}

// What is no request is answered as such, and the session goes on.
func TestLinesThatAreNoRequests(t *testing.T) {
	dir := workspace(t)
	w := wire(t, "-w", dir)
	w.send(hello)
	w.answered("hello")
	call := func(id int) string {
		return calling(id, "exec_command", map[string]any{"workspace_id": "ws", "command": []string{"true"}})
	}
	twice := strings.Replace(call(1), `"arguments":{`, `"arguments":{"command":["touch","made"],`, 1)
	for i, line := range []string{
		"junk\n", "\x00\x01\x02\xff\n", "{\n", "[]\n", `"text"` + "\n", `{"jsonrpc":"2.0","id":{},"method":"ping"}` + "\n",
		strings.Repeat("[", 100_000) + "\n", `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"pad":"` + strings.Repeat("x", 33<<20) + "\"}}\n",
	} {
		w.send(line)
		if m, more := w.next(); !more || m.Error == nil || m.Error.Message == "" || len(m.Error.Message) > 1000 {
			t.Errorf("%.40q is answered %+v", line, m)
		}
		ping := fmt.Sprintf("after-%d", i)
		w.send(`{"jsonrpc":"2.0","id":"` + ping + `","method":"ping"}` + "\n")
		if m := w.answered(ping); m.Error != nil {
			t.Errorf("after %.40q a ping is answered %+v", line, m.Error)
		}
	}
	w.send(twice)
	w.answered(1).answer().wants(t, fields{"code": "INVALID_ARGUMENT"})
	w.send(call(2))
	w.answered(2).answer().wants(t, fields{"dispatch_status": "confirmed"})
	_, code := w.end()
	w.wantsExit(code, 0)
	if !absent(dir + "/made") {
		t.Error("of two commands in one call one ran")
	}
}

// The errors of a tool say nothing of the host that a client has no business with.
func TestErrorsKeepQuiet(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	must(t, os.Chmod(dir, 0o555))
	unwritable := s.exec("true")
	must(t, os.Chmod(dir, 0o755))
	for _, a := range []answer{unwritable, s.exec("no-such-program"), s.exec("/usr"), s.status("proc_0"),
		s.call("exec_command", map[string]any{"workspace_id": "none", "command": []string{"true"}})} {
		b, err := json.Marshal(a.fields)
		must(t, err)
		for _, word := range []string{"goroutine", ".go:", "/run/codespace", "codespace-helper", os.Getenv("XDG_STATE_HOME"), "stage-"} {
			if strings.Contains(string(b)+a.said, word) {
				t.Errorf("an error says %q: %s", word, b)
			}
		}
		if !a.isError {
			t.Errorf("no error: %s", b)
		}
	}
}
