package line_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// promptly bounds the end of everything after the end of a client.
const promptly = 2 * time.Second

// goingOn makes argv of a command that would go on, in two sessions.
func goingOn(m string) []string {
	return shell("setsid sleep " + m + " & trap '' TERM HUP; sleep " + m)
}

// Whenever the input ends, everything that was started is gone, and the exit is 0.
func TestClientDisconnects(t *testing.T) {
	m := marker()
	args := map[string]any{"workspace_id": "ws", "command": goingOn(m)}
	begun := func(w *wired) string {
		w.send(hello + calling(1, "exec_command", args))
		id := w.answered(1).answer().text("process_id")
		appears(t, m)
		return id
	}
	for name, until := range map[string]func(w *wired){
		"before anything":      func(*wired) {},
		"within a line":        func(w *wired) { w.send(hello[:20]) },
		"after the greeting":   func(w *wired) { w.send(hello); w.answered("hello") },
		"before the dispatch":  func(w *wired) { w.send(hello + calling(1, "exec_command", args)) },
		"while it runs":        func(w *wired) { begun(w) },
		"within a call":        func(w *wired) { begun(w); w.send(calling(2, "process_status", args)[:40]) },
		"while a read waits":   func(w *wired) { w.send(waiting(begun(w))) },
		"while it is ended":    func(w *wired) { w.send(calling(2, "terminate_process", map[string]any{"process_id": begun(w)})) },
		"with the next queued": func(w *wired) { begun(w); w.send(calling(2, "exec_command", args)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := wire(t, "-w", workspace(t))
			until(w)
			began := time.Now()
			_, code := w.end()
			w.wantsExit(code, 0)
			if took := time.Since(began); took > promptly {
				t.Errorf("codespace mcp took %v to end", took)
			}
			gone(t, promptly, m)
		})
	}
}

func waiting(id string) string {
	return calling(9, "read_process", map[string]any{"process_id": id, "wait_ms": 20000})
}

// A client that dies takes the output away too, or does not even end the input.
func TestClientDies(t *testing.T) {
	for name, die := range map[string]func(w *wired){
		"both pipes": func(w *wired) { w.out.Close(); w.in.Close() },
		"SIGTERM":    func(w *wired) { w.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGINT":     func(w *wired) { w.cmd.Process.Signal(syscall.SIGINT) },
		"SIGKILL":    func(w *wired) { w.cmd.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			m := marker()
			w := wire(t, "-w", workspace(t))
			w.send(hello + calling(1, "exec_command", map[string]any{"workspace_id": "ws", "command": goingOn(m)}))
			w.answered(1)
			appears(t, m)
			die(w)
			gone(t, promptly, m)
			err := w.cmd.Wait()
			if code := exitCode(t, err); strings.HasPrefix(name, "SIG") && name != "SIGKILL" {
				w.wantsExit(code, 0)
			}
		})
	}
}

func TestEverythingSentIsAnswered(t *testing.T) {
	dir := workspace(t)
	w := wire(t, "-w", dir)
	w.send(hello + calling(1, "workspace_info", nil) + calling(2, "exec_command", map[string]any{"workspace_id": "ws", "command": []string{"true"}}) +
		calling(3, "process_status", map[string]any{"process_id": "proc_none"}) + `{"jsonrpc":"2.0","id":4,"method":"tools/list"}`) // without a newline
	rest, code := w.end()
	w.wantsExit(code, 0)
	if len(rest) != 5 || rest[`"hello"`].Error != nil || rest["4"].Error != nil {
		t.Errorf("answers: %v", rest)
	}
	if list, _ := rest["1"].answer().fields["workspaces"].([]any); len(list) != 1 {
		t.Errorf("workspace_info: %+v", rest["1"])
	}
	rest["2"].answer().wants(t, fields{"dispatch_status": "confirmed"})
	rest["3"].answer().wants(t, fields{"code": "PROCESS_NOT_FOUND"})
}

// The same as somebody types it.
func TestOneShot(t *testing.T) {
	bin := command(t, ".").Args[0]
	script := `printf '%s' "$1" | "$0" mcp -w .; echo "exit $?"`
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -o pipefail; "+script, bin, hello+calling(1, "workspace_info", nil))
	cmd.Dir = workspace(t)
	out, err := cmd.Output()
	must(t, err)
	if lines := strings.Split(strings.TrimSpace(string(out)), "\n"); len(lines) != 3 || lines[2] != "exit 0" || !strings.Contains(lines[1], `"workspace_id":"ws"`) {
		t.Errorf("output %q", out)
	}
}

func TestWaitingReadAtTheEndOfInput(t *testing.T) {
	w := wire(t, "-w", workspace(t))
	w.send(hello + calling(1, "exec_command", map[string]any{"workspace_id": "ws", "command": shell("printf there; exec sleep 300")}))
	id := w.answered(1).answer().text("process_id")
	for cursor := int64(0); cursor < 5; { // what is there is read; the next read waits
		w.send(calling(2, "read_process", map[string]any{"process_id": id, "cursor": cursor, "wait_ms": 20000}))
		cursor = w.answered(2).answer().number("cursor")
	}
	w.send(calling(9, "read_process", map[string]any{"process_id": id, "cursor": 5, "wait_ms": 20000}))
	began := time.Now()
	rest, code := w.end()
	w.wantsExit(code, 0)
	rest["9"].answer().wants(t, fields{"chunk": "", "cursor": 5, "code": nil})
	if took := time.Since(began); took > promptly {
		t.Errorf("the answer and the end took %v", took)
	}
}
