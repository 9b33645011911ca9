package line_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal starts a command that has one.
func (s *session) terminal(argv ...string) string {
	s.t.Helper()
	a := s.call("exec_command", map[string]any{"workspace_id": s.workspace, "command": argv, "tty": true})
	if a.isError {
		s.t.Fatalf("cannot start %q on a terminal: %v", argv, a.fields)
	}
	return a.text("process_id")
}

func (s *session) types(id, data string) answer {
	s.t.Helper()
	return s.call("write_stdin", map[string]any{"process_id": id, "data": data})
}

func (s *session) resize(id string, rows, cols int) answer {
	s.t.Helper()
	return s.call("process_resize", map[string]any{"process_id": id, "rows": rows, "cols": cols})
}

func TestTerminal(t *testing.T) {
	s := start(t, workspace(t))
	id := s.terminal(shell("stty size; tty; test -c $(tty) && echo real; echo $TERM; read x; echo got:$x; stty size; exit 3")...)
	s.until(id, "xterm-256color")
	s.resize(id, 40, 100).wants(t, fields{"ok": true})
	s.types(id, "hello\n").wants(t, fields{"accepted_bytes": 6, "replayed": false})
	out := string(s.output(id, 0))
	for _, want := range []string{"24 80\r\n", "/dev/pts/", "real\r\n", "got:hello\r\n", "40 100\r\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the terminal did not show %q: %q", want, out)
		}
	}
	s.exited(id).wants(t, fields{"termination": "exited", "exit_code": 3, "eof": true})
	s.resize(id, 30, 90).refused(t, "PROCESS_NOT_RUNNING")
	s.types(id, "x").refused(t, "PROCESS_NOT_RUNNING")
}

// What is typed at a terminal is data, also when it looks like an order to one.
func TestEscapeSequencesAreData(t *testing.T) {
	s := start(t, workspace(t))
	const odd = "\x1b]52;c;cGF5bG9hZA==\x07\x1b[6n\x9b0c"
	id := s.terminal(shell(`printf '\033]52;c;cGF5bG9hZA==\007\033[6n\2330c'`)...)
	if out := s.output(id, 0); string(out) != odd {
		t.Errorf("got %q, want %q", out, odd)
	}
}

func TestTerminalThatIsNone(t *testing.T) {
	s := start(t, workspace(t))
	id := s.started("sleep", "100")
	s.resize(id, 30, 90).refused(t, "PROCESS_NOT_TTY")
	s.resize("proc_nope", 30, 90).refused(t, "PROCESS_NOT_FOUND")
	for _, size := range [][2]int{{0, 80}, {24, 0}, {65536, 80}, {24, -1}} {
		s.resize(id, size[0], size[1]).refused(t, "INVALID_ARGUMENT")
	}
	s.terminate(id)
	s.exited(id)
	s.resize(id, 30, 90).refused(t, "PROCESS_NOT_RUNNING")
}

func TestTerminalEndsItsTree(t *testing.T) {
	s, mark := start(t, workspace(t)), marker()
	id := s.terminal(shell("trap '' HUP TERM; setsid sleep " + mark + " & sleep " + mark)...)
	appears(t, mark)
	s.terminate(id)
	s.exited(id).wants(t, fields{"termination": "terminated"})
	gone(t, soon, mark)
}

// Resizes during ends answer one of three codes or ok, and harm nobody.
func TestResizesDuringExits(t *testing.T) {
	s, ok := start(t, workspace(t)), map[string]int{}
	const rounds, each = 20, 50
	for range rounds {
		a := s.call("exec_command", map[string]any{"workspace_id": s.workspace, "command": []string{"true"}, "tty": true, "access": "read"})
		if a.text("code") == "PROCESS_LIMIT" {
			continue // earlier ones are still ending
		}
		id := a.text("process_id")
		for range each {
			a := s.resize(id, 30, 90)
			ok[a.text("code")]++
		}
	}
	for code := range ok {
		switch code {
		case "", "PROCESS_NOT_TTY", "PROCESS_NOT_RUNNING", "PROCESS_NOT_FOUND":
		default:
			t.Errorf("a resize answered %s", code)
		}
	}
	t.Logf("%d resizes: %v", rounds*each, ok)
	s.says("true")
}

func TestManyTerminalsAtOnce(t *testing.T) {
	s := start(t, workspace(t))
	const most = 8 // live processes of a workspace
	var wait sync.WaitGroup
	for i := range most {
		wait.Go(func() {
			a, err := s.ask("exec_command", map[string]any{"workspace_id": s.workspace, "tty": true, "access": "read",
				"command": shell(fmt.Sprintf("read x; echo %d-$x", i))})
			if err != nil || a.isError {
				t.Errorf("terminal %d: %v %v", i, err, a.fields)
				return
			}
			id := a.text("process_id")
			if _, err := s.ask("write_stdin", map[string]any{"process_id": id, "data": "yes\n"}); err != nil {
				t.Error(err)
			}
			if out := string(s.output(id, 0)); !strings.Contains(out, fmt.Sprintf("%d-yes", i)) {
				t.Errorf("terminal %d said %q", i, out)
			}
		})
	}
	wait.Wait()
}

// codespace run on a terminal gives the command one, which follows its size.
func TestRunOnATerminal(t *testing.T) {
	master, slave := pair(t)
	must(t, unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 77}))
	cmd := command(t, workspace(t), "--", "sh", "-c", "tty; stty size; read x; echo got:$x; exit 6")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	must(t, cmd.Start())
	slave.Close()
	out := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(master) // EIO at the end
		out <- string(b)
	}()
	_, err := master.WriteString("word\r")
	must(t, err)
	if code := exitCode(t, cmd.Wait()); code != 6 {
		t.Errorf("exit status %d, want 6", code)
	}
	got := <-out
	for _, want := range []string{"/dev/pts/", "33 77", "got:word"} {
		if !strings.Contains(got, want) {
			t.Errorf("the terminal did not show %q: %q", want, got)
		}
	}
}

// pair is a pseudo-terminal of the host.
func pair(t *testing.T) (master, slave *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	must(t, err)
	must(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	must(t, err)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	master = os.NewFile(uintptr(fd), "master")
	t.Cleanup(func() { master.Close() })
	return master, slave
}

// The end of input reaches a command on a terminal also behind an unfinished line.
func TestCloseBehindAnUnfinishedLine(t *testing.T) {
	s := start(t, workspace(t))
	for _, data := range []string{"", "line\n", "unfinished"} {
		id := s.terminal("sh", "-c", "stty -echo; echo up; cat; echo ended")
		s.until(id, "up")
		s.call("write_stdin", map[string]any{"process_id": id, "data": data, "close": true})
		s.exited(id).wants(t, fields{"termination": "exited", "exit_code": 0})
		if out := string(s.output(id, 0)); !strings.HasSuffix(out, "ended\r\n") || !strings.Contains(out, strings.TrimSpace(data)) {
			t.Errorf("after %q it printed %q", data, out)
		}
	}
}
