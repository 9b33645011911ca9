package line_test

import (
	"fmt"
	"strings"
	"testing"
)

// running counts the live processes that the agent is shown.
func (s *session) running() (n int) {
	s.t.Helper()
	for cursor := ""; ; {
		args := map[string]any{"workspace_id": s.workspace}
		if cursor != "" {
			args["cursor"] = cursor
		}
		a := s.call("process_list", args)
		list, _ := a.fields["processes"].([]any)
		for _, p := range list {
			if (answer{fields: p.(map[string]any)}).text("state") == "running" {
				n++
			}
		}
		if cursor = a.text("next_cursor"); cursor == "" {
			return n
		}
	}
}

// answersOf releases commands that wait for a line, all at the same time, and is
// what each said. A command that does not then end with its number is a failure.
func (s *session) answersOf(ids []string) []string {
	s.t.Helper()
	said := make([]string, len(ids))
	atOnce(s.t, len(ids), func(i int) (err error) {
		if _, err = s.ask("write_stdin", map[string]any{"process_id": ids[i], "data": fmt.Sprintf("line %d\n", i)}); err == nil {
			said[i], err = s.heard(ids[i], "")
		}
		return err
	})
	for i, id := range ids {
		s.exited(id).wants(s.t, fields{"termination": "exited", "exit_code": i})
	}
	return said
}

// All the readers live at the same time, and so does the writer, who neither waits
// for them nor is seen late by them.
func TestHundredReadersAndAWriter(t *testing.T) {
	dir := workspace(t)
	s := crowded(t, dir, 101)
	writer := s.started(shell("while read n; do echo $n >>journal; echo did $n; done; exit 9")...)
	s.types(writer, "before\n")
	s.until(writer, "did before")
	ids := make([]string, 100)
	atOnce(t, len(ids), func(i int) (err error) {
		ids[i], err = s.dispatch(map[string]any{"access": "read"}, shell(`cat journal; read x n
cat journal; { echo no >>journal; } 2>/dev/null || echo "kept $n"; exit $n`)...)
		if err == nil {
			_, err = s.heard(ids[i], "before\n")
		}
		return err
	})
	if n := s.running(); n != 101 {
		t.Errorf("%d processes run, want 100 readers and a writer", n)
	}
	s.exec("true").refused(t, "WORKSPACE_BUSY").below("details").below("holder").wants(t, fields{"process_id": writer})
	a := s.call("exec_command", map[string]any{"workspace_id": "site", "command": []string{"true"}, "access": "read"}).refused(t, "PROCESS_LIMIT")
	a.below("details").wants(t, fields{"limit": 101})
	s.types(writer, "meanwhile\n")
	s.until(writer, "did meanwhile")
	right := 0
	// In two halves: of those that have ended 64 are kept.
	for i, out := range append(s.answersOf(ids[:50]), s.answersOf(ids[50:])...) {
		if want := fmt.Sprintf("before\nbefore\nmeanwhile\nkept %d\n", i%50); out != want {
			t.Errorf("reader %d said %q, want %q", i, out, want)
			continue
		}
		right++
	}
	s.call("write_stdin", map[string]any{"process_id": writer, "data": "after\n", "close": true})
	if out := string(s.output(writer, 0)); out != "did before\ndid meanwhile\ndid after\n" {
		t.Errorf("the writer said %q", out)
	}
	s.exited(writer).wants(t, fields{"termination": "exited", "exit_code": 9})
	if got := contents(t, dir+"/journal"); got != "before\nmeanwhile\nafter\n" {
		t.Errorf("the journal holds %q", got)
	}
	s.says("true")
	t.Logf("%d of %d readers read beside the writer", right, len(ids))
}

// Each command has a terminal of its own and sees no other. With the session all
// of it is gone.
func TestSixtyFourTerminals(t *testing.T) {
	s, m := crowded(t, workspace(t), 64), marker()
	ids, devices := make([]string, 64), map[string]int{}
	atOnce(t, len(ids), func(i int) (err error) {
		ids[i], err = s.dispatch(map[string]any{"tty": true, "access": "read"}, shell("sleep "+m+` &
stat -Lc 'device %d:%i' $(tty); tty; ls /dev/pts | wc -l; read x n; echo "got:$x $n"; exit $n`)...)
		if err == nil {
			_, err = s.heard(ids[i], "/dev/pts/0\r\n2\r\n") // itself and ptmx
		}
		return err
	})
	if n := s.running(); n != len(ids) {
		t.Errorf("%d processes run, want %d", n, len(ids))
	}
	if n := len(sleepers(t, m)); n != len(ids) {
		t.Errorf("%d children run, want %d", n, len(ids))
	}
	for i, out := range s.answersOf(ids) {
		// What was typed is echoed by the terminal, and then by the command.
		if mine := fmt.Sprintf("line %d\r\ngot:line %d\r\n", i, i); strings.Count(out, "line") != 2 || !strings.HasSuffix(out, mine) {
			t.Errorf("terminal %d shows %q", i, out)
		}
		device, _, _ := strings.Cut(out, "\r\n")
		devices[device]++
	}
	if len(devices) != len(ids) {
		t.Errorf("%d devices for %d terminals: %v", len(devices), len(ids), devices)
	}
	if n := s.running(); n != 0 {
		t.Errorf("%d processes still run", n)
	}
	gone(t, promptly, m)
	s.says("true")
	t.Logf("%d of %d terminals, each a device of its own", len(devices), len(ids))
}
