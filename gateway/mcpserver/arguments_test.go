package mcpserver_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"codespace/gateway/mcpserver"
	"codespace/runner"
)

const invalid, command = runner.InvalidArgument, runner.InvalidCommand

var refusals = []struct {
	name, tool, arguments string
	code                  runner.Code
	says                  string
}{
	{"key twice", "read_process", `{"process_id":"p","process_id":"q"}`, invalid, `key "process_id" is given twice`},
	{"key twice, escaped", "read_process", `{"process_id":"p","process\u005fid":"q"}`, invalid, "given twice"},
	{"other case", "read_process", `{"Process_id":"p"}`, invalid, `argument "Process_id" is unknown; send only: cursor, encoding, max_bytes, process_id, wait_ms`},
	{"dotless i", "read_process", `{"process_ıd":"p"}`, invalid, "is unknown"},
	{"unknown", "exec_command", `{"workspace_id":"w","command":["a"],"timeout":5}`, invalid, `argument "timeout" is unknown; send only: access, command, tty, workspace_id`},
	{"long unknown", "exec_command", `{"` + strings.Repeat("x", 100_000) + `":5}`, invalid, "…\" is unknown"},
	{"hostile unknown", "exec_command", `{"a\nb\u001b[2J":5}`, invalid, `"a\nb\x1b[2J" is unknown`},
	{"missing", "exec_command", `{"workspace_id":"w"}`, invalid, "command is required"},
	{"absent", "exec_command", ``, invalid, "is required"},
	{"null", "exec_command", `null`, invalid, "is required"},
	{"a list", "exec_command", `[]`, invalid, "the arguments must be an object, not array"},
	{"a string", "exec_command", `"x"`, invalid, "not string"},
	{"two values", "exec_command", `{} {}`, invalid, "not valid JSON"},
	{"cut off", "exec_command", `{"workspace_id":`, invalid, "not valid JSON"},
	{"null string", "read_process", `{"process_id":null}`, invalid, "process_id must be of type string, not null"},
	{"number for string", "read_process", `{"process_id":7}`, invalid, "process_id must be of type string, not number"},
	{"string for integer", "read_process", `{"process_id":"p","cursor":"7"}`, invalid, "cursor must be of type integer, not string"},
	{"boolean for integer", "read_process", `{"process_id":"p","cursor":true}`, invalid, "not boolean"},
	{"fraction", "read_process", `{"process_id":"p","cursor":1.5}`, invalid, "cursor must be of type integer, not a number with a fraction"},
	{"integral fraction", "read_process", `{"process_id":"p","cursor":1.0}`, invalid, "fraction"},
	{"exponent", "read_process", `{"process_id":"p","cursor":1e3}`, invalid, "exponent"},
	{"huge", "read_process", `{"process_id":"p","cursor":99999999999999999999999999}`, invalid, "cursor is too large"},
	{"hugest", "read_process", `{"process_id":"p","cursor":` + strings.Repeat("9", 100_000) + `}`, invalid, "cursor is too large"},
	{"negative", "read_process", `{"process_id":"p","cursor":-1}`, invalid, "cursor is -1; send at least 0"},
	{"no bytes", "read_process", `{"process_id":"p","max_bytes":0}`, invalid, "max_bytes is 0; send at least 1"},
	{"too many bytes", "read_process", `{"process_id":"p","max_bytes":65537}`, invalid, "max_bytes is more than 65536; send at most 65536"},
	{"long wait", "read_process", `{"process_id":"p","wait_ms":20001}`, invalid, "send at most 20000"},
	{"encoding", "read_process", `{"process_id":"p","encoding":"UTF-8"}`, invalid, `encoding cannot be "UTF-8"; send one of: utf-8, base64`},
	{"NUL", "read_process", `{"process_id":"p\u0000"}`, invalid, "process_id holds a NUL character"},
	{"NUL in a workspace", "exec_command", `{"workspace_id":"\u0000","command":["a"]}`, invalid, "workspace_id holds a NUL"},
	{"NUL in argv", "exec_command", `{"workspace_id":"w","command":["a","b\u0000"]}`, command, "command[1] holds a NUL character"},
	{"empty argv", "exec_command", `{"workspace_id":"w","command":[]}`, command, "command has 0 items; send at least 1"},
	{"long argv", "exec_command", `{"workspace_id":"w","command":["a"` + strings.Repeat(`,""`, 32768) + `]}`, command, "command has more than 32768 items"},
	{"argv a string", "exec_command", `{"workspace_id":"w","command":"ls -l"}`, invalid, "command must be of type array, not string"},
	{"argv of numbers", "exec_command", `{"workspace_id":"w","command":["a",7]}`, invalid, "command[1] must be of type string, not number"},
	{"high half", "exec_command", `{"workspace_id":"w","command":["\ud83d"]}`, invalid, "surrogate"},
	{"low half", "exec_command", `{"workspace_id":"w","command":["\udE00"]}`, invalid, "surrogate"},
	{"halves swapped", "exec_command", `{"workspace_id":"w","command":["\ude00\ud83d"]}`, invalid, "surrogate"},
	{"half in a key", "exec_command", `{"\ud83d":1}`, invalid, "surrogate"},
	{"invalid UTF-8", "exec_command", "{\"workspace_id\":\"\xff\",\"command\":[\"a\"]}", invalid, "not valid UTF-8"},
	{"surrogate in UTF-8", "exec_command", "{\"workspace_id\":\"\xed\xa0\x80\",\"command\":[\"a\"]}", invalid, "not valid UTF-8"},
	{"deep", "exec_command", `{"command":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, invalid, "deeper than 32"},
	{"deepest", "exec_command", strings.Repeat(`{"a":`, 1<<20), invalid, "deeper than 32"},
	{"many keys", "exec_command", `{` + manyKeys(5000) + `}`, invalid, "more than 2048 keys"},
}

func TestDecodeRefuses(t *testing.T) {
	for _, tt := range refusals {
		t.Run(tt.name, func(t *testing.T) {
			args, fault := mcpserver.Decode(tt.tool, tt.arguments)
			if fault == nil {
				t.Fatalf("accepted as %v", args)
			}
			if fault.Code != tt.code || !strings.Contains(fault.Error(), tt.says) || len(fault.Error()) > 500 {
				t.Errorf("got %.600s, want %s with %q", fault, tt.code, tt.says)
			}
		})
	}
}

func TestDecodeAccepts(t *testing.T) {
	tests := []struct {
		tool, arguments string
		want            map[string]any
	}{
		{"workspace_info", ``, map[string]any{}},
		{"workspace_info", `null`, map[string]any{}},
		{"workspace_info", " {\n} ", map[string]any{}},
		{"workspace_info", `{"workspace_id":""}`, map[string]any{"workspace_id": ""}},
		{"read_process", `{ "cursor" : 0 , "process_id" : "\ud83d\ude00 \\ud800 é" }`, map[string]any{"cursor": int64(0), "process_id": "😀 \\ud800 é"}},
		{"read_process", `{"process_id":"p","max_bytes":65536,"wait_ms":20000,"encoding":"base64"}`,
			map[string]any{"process_id": "p", "max_bytes": int64(65536), "wait_ms": int64(20000), "encoding": "base64"}},
		{"exec_command", `{"workspace_id":"w","command":[ "a" , "" ]}`, map[string]any{"workspace_id": "w", "command": []any{"a", ""}}},
	}
	for _, tt := range tests {
		got, fault := mcpserver.Decode(tt.tool, tt.arguments)
		if fault != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %v, %v", tt.arguments, got, fault)
		}
	}
}

func TestCommandLimits(t *testing.T) {
	half := strings.Repeat("x", 1<<20)
	for _, tt := range []struct {
		name    string
		command []string
		refused bool
	}{
		{"a mebibyte", []string{"cat", half}, false},
		{"the limit", []string{half[1:], half[1:]}, false},
		{"one byte over", []string{half[1:], half}, true},
		{"no program", []string{"", "a"}, true},
	} {
		var fault *runner.Fault
		if err := mcpserver.CheckCommand(tt.command); err != nil {
			fault = err.(*runner.Fault)
		}
		if (fault != nil) != tt.refused || fault != nil && fault.Code != runner.InvalidCommand {
			t.Errorf("%s: %v", tt.name, fault)
		}
	}
}

// Each limit of the arguments of patches holds what it says, and not one more.
func TestPatchArgumentLimits(t *testing.T) {
	versions := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"f%d":"absent"`, i))
		}
		return strings.Join(all, ",")
	}
	for name, tt := range map[string]struct {
		tool, arguments string
		refused         bool
	}{
		"2000 versions":      {"apply_patch", `{"workspace_id":"w","patch":"p","expected_versions":{` + versions(2000) + `}}`, false},
		"2001 versions":      {"apply_patch", `{"workspace_id":"w","patch":"p","expected_versions":{` + versions(2001) + `}}`, true},
		"a version twice":    {"apply_patch", `{"workspace_id":"w","patch":"p","expected_versions":{"a":"absent","a":"absent"}}`, true},
		"a version's type":   {"apply_patch", `{"workspace_id":"w","patch":"p","expected_versions":{"a":1}}`, true},
		"a key of 256":       {"apply_patch", `{"workspace_id":"w","patch":"p","operation_key":"` + strings.Repeat("k", 256) + `"}`, false},
		"a key of 257":       {"apply_patch", `{"workspace_id":"w","patch":"p","operation_key":"` + strings.Repeat("k", 257) + `"}`, true},
		"no key":             {"apply_patch", `{"workspace_id":"w","patch":"p","operation_key":""}`, true},
		"asked for by 256":   {"operation_status", `{"workspace_id":"w","operation_key":"` + strings.Repeat("k", 256) + `"}`, false},
		"asked for by 257":   {"operation_status", `{"workspace_id":"w","operation_key":"` + strings.Repeat("k", 257) + `"}`, true},
		"a word for a truth": {"apply_patch", `{"workspace_id":"w","patch":"p","check_only":"yes"}`, true},
	} {
		_, fault := mcpserver.Decode(tt.tool, tt.arguments)
		if (fault != nil) != tt.refused || fault != nil && fault.Code != runner.InvalidArgument {
			t.Errorf("%s: %v", name, fault)
		}
	}
}

// Every way to reach past the operator is refused by name.
func TestForbiddenArgumentsAreUnknown(t *testing.T) {
	valid := map[string]string{
		"workspace_info":    `"workspace_id":"w"`,
		"exec_command":      `"workspace_id":"w","command":["true"]`,
		"read_process":      `"process_id":"p"`,
		"read":              `"workspace_id":"w","path":"a"`,
		"find":              `"workspace_id":"w"`,
		"version":           `"workspace_id":"w","paths":["a"]`,
		"apply_patch":       `"workspace_id":"w","patch":"p","expected_versions":{"a":"absent"}`,
		"operation_status":  `"operation_id":"op"`,
		"process_status":    `"process_id":"p"`,
		"terminate_process": `"process_id":"p"`,
		"write_stdin":       `"process_id":"p","data":"x"`,
		"process_list":      `"workspace_id":"w"`,
		"process_resize":    `"process_id":"p","rows":24,"cols":80`,
	}
	forbidden := []string{"cwd", "env", "timeout", "tty_size", "environment_id", "network", "profile", "approved",
		"work_id", "handoff"}
	s := mcpserver.New(nil, silent(), "test")
	for name := range mcpserver.ToolInputs() {
		if valid[name] == "" {
			t.Errorf("no valid arguments of %s here", name)
		}
		for _, key := range forbidden {
			got := script(t, s, opening+calling(1, name, fmt.Sprintf(`{%s,%q:"x"}`, valid[name], key)))["1"].tool(t)
			if want := fmt.Sprintf("argument %q is unknown", key); !got.IsError || got.Structured["code"] != "INVALID_ARGUMENT" ||
				!strings.Contains(got.Content[0].Text, want) {
				t.Errorf("%s with %s: %+v", name, key, got)
			}
		}
	}
	if _, fault := mcpserver.Decode("process_status", `{"process_id":"p","cursor":1}`); fault == nil {
		t.Error("process_status takes a cursor")
	}
}

func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{}`, `null`, `{"process_id":"p","cursor":1}`, `{"workspace_id":"w","command":["a","\ud83d\ude00"]}`,
		`{"a":1,"a":2}`, `{"command":[[]]}`, `{"cursor":1e3}`, `[`, `{"process_id":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for name := range mcpserver.ToolInputs() {
			args, fault := mcpserver.Decode(name, string(data))
			if (args == nil) == (fault == nil) {
				t.Errorf("%s: %v and %v", name, args, fault)
			}
			for key, value := range args {
				if s, ok := value.(string); ok && strings.ContainsAny(s, "\x00\uFFFD") && !strings.ContainsAny(string(data), "\uFFFD") && !strings.Contains(strings.ToLower(string(data)), "fffd") {
					t.Errorf("%s: %s became %q", name, key, s)
				}
			}
		}
	})
}
