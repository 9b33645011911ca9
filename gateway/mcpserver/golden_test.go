package mcpserver_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codespace/gateway"
	"codespace/gateway/mcpserver"
	"codespace/policy"
	"codespace/runner"
	"codespace/runner/files"
)

var update = flag.Bool("update", false, "rewrite testdata/golden")

const proc = "proc_0123456789abcdef0123456789abcdef"

// golden compares with a file, or writes it under -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run go test ./gateway/mcpserver -update", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run go test ./gateway/mcpserver -update and look at the difference\ngot:\n%s", path, got)
	}
}

func indented(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	return append(out.Bytes(), '\n')
}

func TestGoldenProtocol(t *testing.T) {
	got := script(t, mcpserver.New(nil, silent(), "test"), opening+listTools)
	golden(t, "tools_list.json", indented(t, got["1"].Result))
	golden(t, "initialize.json", indented(t, got[`"init"`].Result))
}

func TestGoldenResults(t *testing.T) {
	answers := map[string]mcpserver.Answer{
		"exec_command":         mcpserver.DispatchAnswer(gateway.Dispatch{ProcessID: proc, Status: "confirmed"}),
		"exec_command_unknown": mcpserver.DispatchAnswer(gateway.Dispatch{ProcessID: proc, Status: "unknown"}),
		"terminate_process":    mcpserver.TerminatedAnswer(proc),
		"workspace_info":       mcpserver.WorkspaceAnswer(described()),
		"workspace_info_list": mcpserver.WorkspacesAnswer([]gateway.Workspace{
			{ID: "api", Profile: "ci", Network: policy.NetworkEnabled, Approvals: policy.ApprovalsOperator, Environment: "host"}, described()}),
		"workspace_info_none": mcpserver.WorkspacesAnswer(nil),
	}
	for name, a := range fileAnswers() {
		answers[name] = a
	}
	for name, st := range statuses() {
		answers["process_status_"+name] = mcpserver.StatusAnswer(st)
	}
	for name, read := range reads() {
		a, err := read.page.Read(t.Context(), read.out.read)
		if err != nil {
			t.Fatal(err)
		}
		answers["read_process_"+name] = a
	}
	for name, fault := range faults() {
		answers["error_"+name] = mcpserver.FaultAnswer(fault)
	}
	for name, a := range answers {
		golden(t, name+".json", indented(t, a.Structured))
		golden(t, name+".txt", []byte(a.Text+"\n"))
		if isError := strings.HasPrefix(name, "error_"); a.IsError != isError {
			t.Errorf("%s: isError is %v", name, a.IsError)
		}
	}
}

func described() gateway.Workspace {
	return gateway.Workspace{
		ID: "site", Profile: "workspace-write", Network: policy.NetworkRestricted, Approvals: policy.ApprovalsOff, Environment: "host",
		Execution: &gateway.Execution{
			Available: true, Files: "read", Process: "write", Serialization: "one writing command at a time",
			Isolation: []string{"user-namespace", "seccomp"}, Network: "no interface but loopback", Enforcement: "best-effort",
			Protected: ".git/hooks", Lifetimes: "/tmp and $HOME are lost when the sandbox is put away",
			Limits: map[string]any{"wall": "10m0s", "memory_bytes": 2 << 30},
		},
	}
}

func fileAnswers() map[string]mcpserver.Answer {
	const version = "sha256:00ff"
	whole := files.ReadResult{Content: []byte("<a> & é\n\xff\n"), Version: version, Size: 12, Next: 12}
	lines := files.ReadResult{Content: []byte("two\n"), Version: version, Size: 12, Offset: 4, Next: 8, Line: 2}
	return map[string]mcpserver.Answer{
		"read_text":   mcpserver.FileAnswer("d/a b.txt", 10_000, false, whole),
		"read_base64": mcpserver.FileAnswer("d/a b.txt", 10_000, true, whole),
		"read_lines":  mcpserver.FileAnswer("a", 10_000, false, lines),
		"find":        mcpserver.FoundAnswer(files.FindResult{Paths: []string{"a.go", "b/c d\n.go", "\xff"}}),
		"find_page":   mcpserver.FoundAnswer(files.FindResult{Paths: []string{"a.go"}, Truncated: true, Reason: "paths", Next: "YQ", Skipped: 2}),
		"find_none":   mcpserver.FoundAnswer(files.FindResult{}),
		"version": mcpserver.VersionsAnswer([]files.Version{
			{Path: "a", Version: version, Size: 3, Mode: 0o644, Kind: "file"}, {Path: "gone", Version: "absent"},
			{Path: "l", Kind: "link", Mode: 0o777, Size: 1}, {Path: "big", Kind: "file", Size: 1 << 30, Mode: 0o600, Error: "FILE_TOO_LARGE"}}, 0, 5),
	}
}

func statuses() map[string]runner.Status {
	start := time.Date(2026, 1, 2, 3, 4, 5, 600, time.FixedZone("", 3600))
	running := runner.Status{
		ProcessID: proc, Workspace: "site", State: runner.Running, OutputTotal: 12, Started: start,
		Usage: runner.Usage{CPU: 1500 * time.Microsecond, PeakMemory: 4096},
	}
	running.Receipt.Digest, running.Receipt.Layers = "sha256:00ff", []string{"user-namespace", "seccomp"}
	ended := func(how runner.Termination, code int, signal string) runner.Status {
		st := running
		st.State, st.Termination, st.EOF, st.Ended, st.Signal = runner.Exited, how, true, start.Add(time.Second), signal
		st.Usage.PIDs = 3
		if code >= 0 {
			st.ExitCode = &code
		}
		return st
	}
	return map[string]runner.Status{
		"running":    running,
		"exited":     ended(runner.ByExit, 7, ""),
		"success":    ended(runner.ByExit, 0, ""),
		"signaled":   ended(runner.BySignal, -1, "SIGSEGV"),
		"timeout":    ended(runner.ByTimeout, -1, "SIGKILL"),
		"terminated": ended(runner.ByTerminate, 143, ""),
		"oom":        ended(runner.ByOOM, -1, "SIGKILL"),
		"lost":       ended(runner.Lost, -1, ""),
	}
}

type reading struct {
	page mcpserver.Page
	out  output
}

func reads() map[string]reading {
	return map[string]reading{
		"text":   {mcpserver.Page{Max: 10_000}, output{data: []byte("<out> & é\n\x1b[1m\xff\n")}},
		"base64": {mcpserver.Page{Max: 10_000, Exact: true}, output{data: []byte("\x00\xff")}},
		"eof":    {mcpserver.Page{Max: 10_000, Cursor: 2}, output{data: []byte("a\n"), eof: true}},
		"lost":   {mcpserver.Page{Max: 2, Cursor: 1}, output{data: []byte("abcdefgh"), lost: 4}},
		"empty":  {mcpserver.Page{Max: 10_000}, output{}},
	}
}

func faults() map[string]*runner.Fault {
	all := map[string]*runner.Fault{
		"busy": {Code: runner.WorkspaceBusy, Message: `workspace "site" is held by ` + proc, Next: "wait for it to end or terminate it",
			Retryable: true, Details: map[string]any{"holder": proc, "since": "2026-01-02T03:04:05Z"}},
		"plain": {Code: runner.ProcessNotFound, Message: "no such process"},
		"huge": {Code: runner.ProcessSpawnFailed, Message: strings.Repeat("é", 5000), Next: "shorten it",
			Details: map[string]any{"all": strings.Repeat("x", 20_000)}},
	}
	for name, arguments := range map[string]string{"unknown_argument": `{"cwd":"/"}`, "empty_command": `{"command":[]}`, "wrong_type": `{"command":["a",7]}`} {
		_, all[name] = mcpserver.Decode("exec_command", arguments)
	}
	return all
}

// Some clients show only the text, some only the structure: neither may lack a value.
func TestTextHoldsEveryValue(t *testing.T) {
	answers := []mcpserver.Answer{mcpserver.WorkspaceAnswer(described()), mcpserver.WorkspacesAnswer([]gateway.Workspace{described()})}
	for _, st := range statuses() {
		answers = append(answers, mcpserver.StatusAnswer(st))
	}
	for _, a := range answers {
		d := json.NewDecoder(bytes.NewReader(a.Structured))
		d.UseNumber()
		for {
			token, err := d.Token()
			if err != nil {
				break
			}
			if _, delim := token.(json.Delim); !delim && !strings.Contains(a.Text, fmt.Sprint(token)) {
				t.Errorf("%v is missing in\n%s", token, a.Text)
			}
		}
	}
}

func TestWorkspaceListHoldsWhatFits(t *testing.T) {
	many := make([]gateway.Workspace, 500)
	for i := range many {
		many[i] = described()
		many[i].ID = fmt.Sprintf("workspace-%03d", i)
	}
	a := mcpserver.WorkspacesAnswer(many)
	var list struct {
		Workspaces []struct {
			ID        string          `json:"workspace_id"`
			Execution json.RawMessage `json:"execution"`
		}
		Truncated bool
		Total     int `json:"workspaces_total"`
	}
	if err := json.Unmarshal(a.Structured, &list); err != nil {
		t.Fatal(err)
	}
	n := len(list.Workspaces)
	if !list.Truncated || list.Total != 500 || n < 50 || list.Workspaces[n-1].ID != fmt.Sprintf("workspace-%03d", n-1) || list.Workspaces[0].Execution != nil {
		t.Errorf("%d listed, truncated %v of %d", n, list.Truncated, list.Total)
	}
	text, _ := json.Marshal(a.Text)
	if len(a.Structured) > 10_000 || len(text) > 10_000 {
		t.Errorf("%d and %d bytes", len(a.Structured), len(text))
	}
}

// However a file's bytes have to be escaped, a part of it stays within its cap, loses
// nothing and, where there is anything to show, shows something.
func TestPartOfAFileFits(t *testing.T) {
	for _, unit := range []string{"a", "\"", "<", "\xff", "é", "\x00", "\u2028", "😀"} {
		for _, most := range []int{mcpserver.SmallestCap, 10_000, mcpserver.LargestPage} {
			content := []byte(strings.Repeat(unit, most/len(unit)))
			for _, exact := range []bool{false, true} {
				got := files.ReadResult{Content: content, Version: "sha256:" + strings.Repeat("0", 64), Size: 1 << 40, Offset: 1 << 39, Next: 1<<39 + int64(len(content)), Truncated: true}
				a := mcpserver.FileAnswer(strings.Repeat("d/", 20)+"name", most, exact, got)
				text, _ := json.Marshal(a.Text)
				var shown struct {
					Range struct{ Length int64 }
					Next  int64 `json:"next_offset"`
				}
				if err := json.Unmarshal(a.Structured, &shown); err != nil {
					t.Fatal(err)
				}
				if len(a.Structured) > most || len(text) > most || shown.Range.Length == 0 || shown.Next != 1<<39+shown.Range.Length {
					t.Errorf("%q, at most %d, exact %v: %d and %d bytes, %+v", unit, most, exact, len(a.Structured), len(text), shown)
				}
			}
		}
	}
}
