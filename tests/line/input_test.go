package line_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

func TestInput(t *testing.T) {
	s := start(t, workspace(t))
	id := s.started("cat")
	s.types(id, "one\n").wants(t, fields{"accepted_bytes": 4})
	s.until(id, "one")
	s.call("write_stdin", map[string]any{"process_id": id, "encoding": "base64", "close": true,
		"data": base64.StdEncoding.EncodeToString([]byte{0, 0xff, '\n'})}).wants(t, fields{"accepted_bytes": 3})
	if out := s.output(id, 0); string(out) != "one\n\x00\xff\n" {
		t.Errorf("cat said %q", out)
	}
	s.exited(id).wants(t, fields{"exit_code": 0})
}

func TestInputIsAcceptedOnceForAnID(t *testing.T) {
	s := start(t, workspace(t))
	id := s.started(shell("cat; sleep 100")...)
	once := map[string]any{"process_id": id, "data": "x", "write_id": "a"}
	s.call("write_stdin", once).wants(t, fields{"accepted_bytes": 1, "replayed": false})
	s.call("write_stdin", once).wants(t, fields{"accepted_bytes": 1, "replayed": true})
	s.call("write_stdin", map[string]any{"process_id": id, "data": "y", "write_id": "a"}).refused(t, "INVALID_ARGUMENT")
	s.call("write_stdin", map[string]any{"process_id": id, "data": "z", "write_id": "b", "close": true})
	s.until(id, "xz")
	s.types(id, "late").refused(t, "INVALID_ARGUMENT")
	s.terminate(id)
	if out := s.output(id, 0); string(out) != "xz" {
		t.Errorf("cat said %q, want xz", out)
	}
}

// Who never reads fills a bounded buffer; a write that does not fit is refused whole.
func TestInputThatIsNotRead(t *testing.T) {
	s := start(t, workspace(t))
	id := s.started("sleep", "100")
	full := strings.Repeat("x", 1<<20)
	s.types(id, full).wants(t, fields{"accepted_bytes": 1 << 20})
	refused := s.types(id, full).refused(t, "LIMIT_EXCEEDED")
	if refused.text("retryable") != "true" {
		t.Errorf("not retryable: %v", refused.fields)
	}
	s.terminate(id)
	s.exited(id)
	s.types("proc_nope", "x").refused(t, "PROCESS_NOT_FOUND")
	s.call("write_stdin", map[string]any{"process_id": id, "data": "!", "encoding": "base64"}).refused(t, "INVALID_ARGUMENT")
}

// A command that only reads runs beside one that writes, and beside others.
func TestReadersBesideAWriter(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	writer := s.started(shell("echo 1 > made; echo ready; sleep 100")...)
	s.until(writer, "ready")
	s.exec("true").refused(t, "WORKSPACE_BUSY")
	var wait sync.WaitGroup
	const readers, lanes = 100, 5
	for lane := range lanes {
		wait.Go(func() {
			for n := range readers / lanes {
				a, err := s.ask("exec_command", map[string]any{"workspace_id": s.workspace, "access": "read",
					"command": shell("cat made; touch forbidden")})
				if err != nil || a.isError {
					t.Errorf("reader %d of lane %d: %v %v", n, lane, err, a.fields)
					return
				}
				id := a.text("process_id")
				if out := string(s.output(id, 0)); !strings.HasPrefix(out, "1\n") || !strings.Contains(out, "Read-only file system") {
					t.Errorf("a reader said %q", out)
				}
				s.exited(id)
			}
		})
	}
	wait.Wait()
	if !absent(dir + "/forbidden") {
		t.Error("a reader wrote")
	}
	s.status(writer).wants(t, fields{"state": "running"})
	s.terminate(writer)
	s.exited(writer)
	s.says("true")
	if r := run(t, dir, "--read-only", "--", "sh", "-c", "cat made; touch forbidden"); r.code == 0 || !strings.HasPrefix(r.stdout, "1\n") {
		t.Errorf("run --read-only: %+v", r)
	}
}

// A server that one command starts is reachable by the next, and ends with its own.
func TestServerForTheNextCommand(t *testing.T) {
	s := start(t, workspace(t))
	server := s.call("exec_command", map[string]any{"workspace_id": s.workspace, "access": "read",
		"command": []string{"python3", "-u", "-m", "http.server", "8000", "--bind", "127.0.0.1"}}).text("process_id")
	s.until(server, "Serving")
	got := s.says("python3", "-c", "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8000/').status)")
	if strings.TrimSpace(got) != "200" {
		t.Errorf("the server answered %q", got)
	}
	s.terminate(server)
	s.exited(server)
}

func TestProcessList(t *testing.T) {
	s := start(t, workspace(t))
	first := s.started("true")
	s.exited(first)
	second := s.started("sleep", "100")
	a := s.call("process_list", map[string]any{"workspace_id": s.workspace})
	a.wants(t, fields{"truncated": false, "processes_total": 2, "next_cursor": nil})
	list, _ := a.fields["processes"].([]any)
	if len(list) != 2 {
		t.Fatalf("listed %v", a.fields)
	}
	answer{fields: list[0].(map[string]any)}.wants(t, fields{"process_id": first, "state": "exited", "exit_code": 0, "termination": "exited"})
	answer{fields: list[1].(map[string]any)}.wants(t, fields{"process_id": second, "state": "running", "tty": false})
	s.call("process_list", map[string]any{"workspace_id": "absent"}).refused(t, "WORKSPACE_NOT_FOUND")
	s.call("process_list", map[string]any{"cursor": "odd"}).refused(t, "INVALID_ARGUMENT")
	s.terminate(second)
	s.exited(second)
}

// Ended handles stay up to 64: the list pages through them all, each once.
func TestProcessListPages(t *testing.T) {
	s := start(t, workspace(t))
	want := map[string]bool{}
	for range 66 {
		id := s.started("true")
		s.exited(id)
		want[id] = true
	}
	seen, cursor := map[string]bool{}, ""
	for {
		args := map[string]any{}
		if cursor != "" {
			args["cursor"] = cursor
		}
		a := s.call("process_list", args)
		for _, p := range a.fields["processes"].([]any) {
			id := fmt.Sprint(p.(map[string]any)["process_id"])
			if seen[id] || !want[id] {
				t.Errorf("%s is listed again, or is not ours", id)
			}
			seen[id] = true
		}
		if cursor = a.text("next_cursor"); cursor == "" {
			break
		}
	}
	if len(seen) != 64 {
		t.Errorf("%d handles are listed, want the last 64 of %d", len(seen), len(want))
	}
}

// A workspace that was moved away by a command is not another one for the next.
func TestWorkspaceThatWasMovedAway(t *testing.T) {
	dir := workspace(t) + "/own/w"
	must(t, os.MkdirAll(dir, 0o755))
	s := start(t, dir)
	up := strings.Split(dir, "/")[2] // of /tmp/<up>/...
	s.run(shell(fmt.Sprintf("chmod 755 /tmp/%[1]s; mv /tmp/%[1]s /tmp/away && mkdir -p %[2]s && echo fake > %[2]s/fake", up, dir))...)
	a := s.exec(shell("ls; echo real > written")...)
	if !a.isError {
		id := a.text("process_id")
		if out := string(s.output(id, 0)); strings.Contains(out, "fake") {
			t.Errorf("the command ran in another directory: %q", out)
		}
		s.exited(id)
		if absent(dir + "/written") {
			t.Error("what the command wrote is not in the workspace")
		}
	}
	if got := s.says(shell("echo again > later; ls")...); strings.Contains(got, "fake") || absent(dir+"/later") {
		t.Errorf("the session does not recover: %q", got)
	}
}
