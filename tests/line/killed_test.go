package line_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// family is a line of shell that leaves a child behind in the background, one that
// is orphaned and one that has left the session, and goes on itself.
func family(m string) []string {
	return shell(fmt.Sprintf("sleep %[1]s & (sleep %[1]s &); setsid sleep %[1]s & echo up; sleep %[1]s; :", m))
}

// deaf is a family that heeds no hangup.
func deaf(m string) []string { return shell("trap '' HUP INT TERM; " + family(m)[2]) }

const familySize = 4

func appearsWhole(t testing.TB, m string) {
	t.Helper()
	eventually(t, soon, "the family runs", func() bool { return len(sleepers(t, m)) == familySize })
}

// Somebody's terminal program ends with codespace run in it, or the run is killed:
// no process of the command is left.
func TestTerminalClientIsKilled(t *testing.T) {
	for name, tt := range map[string]struct {
		argv func(m string) []string
		kill func(run *os.Process, terminal *os.File)
	}{
		"the run":      {deaf, func(run *os.Process, _ *os.File) { run.Kill() }},
		"the terminal": {deaf, func(_ *os.Process, terminal *os.File) { terminal.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			m := marker()
			master, slave := pair(t)
			cmd := command(t, workspace(t), append([]string{"--"}, tt.argv(m)...)...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			must(t, cmd.Start())
			slave.Close()
			appearsWhole(t, m)
			tt.kill(cmd.Process, master)
			gone(t, promptly+3*time.Second, m) // TERM, and KILL after the grace
			if code := exitCode(t, cmd.Wait()); code == 0 {
				t.Error("exit status 0 of what was cut off")
			}
		})
	}
}

// The same over MCP, where the terminal is the command's alone.
func TestServerOfATerminalIsKilled(t *testing.T) {
	m := marker()
	w := wire(t, "-w", workspace(t))
	w.send(hello + calling(1, "exec_command", map[string]any{"workspace_id": "ws", "command": deaf(m), "tty": true}))
	w.answered(1).answer().wants(t, fields{"dispatch_status": "confirmed"})
	appearsWhole(t, m)
	must(t, w.cmd.Process.Kill())
	gone(t, promptly, m)
	if code := exitCode(t, w.cmd.Wait()); code != -1 {
		t.Errorf("exit status %d of what was killed", code)
	}
}

// Under nohup a hangup is for nobody, and a shell without job control starts what
// is in the background with interrupts ignored: neither signal is the command's.
func TestRunHeedsNoSignalThatIsIgnored(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			argv := command(t, workspace(t), append([]string{"--"}, shell("trap 'echo passed; exit 5' USR1; echo up; while :; do sleep 0.02; done")...)...).Args
			l := background(t, exec.CommandContext(t.Context(), "sh", append([]string{"-c", `trap '' ` + name + `; exec "$@"`, "sh"}, argv...)...))
			if up := l.line(); up != "up" {
				t.Fatalf("the first line is %q", up)
			}
			must(t, l.cmd.Process.Signal(sig))
			must(t, l.cmd.Process.Signal(syscall.SIGUSR1)) // comes after the other, if that comes
			if r := l.end().wants(t, 5); r.stdout != "passed\n" {
				t.Errorf("stdout %q, stderr %q", r.stdout, r.stderr)
			}
		})
	}
}
