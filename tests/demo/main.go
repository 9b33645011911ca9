// Command demo shows CodeSpace at work: a client that is not ours connects, has
// a project built, tested and committed, talks to commands while they run, and
// tries to get out.
//
//	demo PROGRAM
//
// PROGRAM is the codespace to show, with its two helpers beside it. The client
// is mark3labs/mcp-go; nothing of this module is imported. Each step says what
// it runs, what came back and whether that is as promised. The exit status is 0
// if every step was. All it needs lies in one fresh directory, which it removes;
// of the network it touches a port of its own on the loopback.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	timeLimit  = 8 * time.Minute // of a command: the first go test compiles much of the standard library
	shortLimit = 2 * time.Second // of the command that is to be ended by it
	liveLimit  = time.Minute     // of commands that are spoken to: one that is not answered ends
	allLimit   = 9 * time.Minute // of everything
)

// view is where a command in a sandbox looks for programs, and so do we.
const view = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: demo PROGRAM (make demo does it)")
		os.Exit(2)
	}
	info, err := os.Stdout.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == ""
	if err := play(os.Args[1], &screen{out: os.Stdout, colour: terminal}); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo is one run.
type demo struct {
	*screen
	program  string
	scratch  string // everything is below it
	flags    []string
	gate     *gate
	sessions map[time.Duration]*session // by the time limit of their commands
	last     status                     // of the command before
}

// play shows every step. The error is for what kept the demo from being shown to
// the end, and for a step that was not as promised.
func play(program string, s *screen) (err error) {
	// A reader that goes away must not keep us from tidying up.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, allLimit)
	defer cancel()
	d := &demo{screen: s, sessions: map[time.Duration]*session{}}
	if d.program, err = filepath.Abs(program); err != nil {
		return err
	}
	if d.scratch, err = os.MkdirTemp("", "codespace-demo-"); err != nil {
		return err
	}
	defer os.RemoveAll(d.scratch)
	if err := d.prepare(ctx); err != nil {
		return fmt.Errorf("cannot prepare: %w", err)
	}
	defer d.gate.Close()
	defer d.kill()
	for _, st := range d.steps() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d.show(ctx, st)
	}
	return d.summary()
}

// prepare writes the project, makes it a git repository and opens the gate.
func (d *demo) prepare(ctx context.Context) (err error) {
	for name, text := range project {
		file := filepath.Join(d.project(), name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if git := d.tool("git"); git != "" {
		cmd := exec.CommandContext(ctx, git, "init", "--quiet", "--initial-branch=main", "--template=", d.project())
		cmd.Env = []string{"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git init: %w: %s", err, out)
		}
	}
	d.flags = []string{"--workspace", d.project()}
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		d.flags = append(d.flags, "--env", "GIT_"+who+"_NAME=Demo", "--env", "GIT_"+who+"_EMAIL=demo@localhost")
	}
	d.flags = append(d.flags, d.toolchain(ctx)...)
	d.gate, err = openGate()
	return err
}

func (d *demo) project() string { return filepath.Join(d.scratch, "project") }

// toolchain is what shows Go to a sandbox where it is not there anyway, as in
// /usr/local/go it is.
func (d *demo) toolchain(ctx context.Context) []string {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	root := strings.TrimSpace(string(out))
	if err != nil || root == "" || strings.HasPrefix(root, "/usr/") {
		return nil
	}
	return []string{"--mount", root, "--env", "PATH=" + filepath.Join(root, "bin") + ":" + view}
}

// tool finds a program where a sandbox would, "" if it is not there.
func (d *demo) tool(name string) string {
	dirs := filepath.SplitList(view + ":/usr/local/go/bin")
	for i, flag := range d.flags {
		if flag == "--mount" {
			dirs = append(dirs, filepath.Join(d.flags[i+1], "bin"))
		}
	}
	for _, dir := range dirs {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found
		}
	}
	return ""
}

// session is a server whose commands have this time limit. Several servers on one
// workspace are normal.
func (d *demo) session(ctx context.Context, limit time.Duration) (*session, error) {
	if s := d.sessions[limit]; s != nil {
		return s, nil
	}
	s, err := d.connect(ctx, limit)
	if err == nil {
		d.sessions[limit] = s
	}
	return s, err
}

// kill ends the servers that are still there, which they are only if a step
// before the last has failed.
func (d *demo) kill() {
	for _, s := range d.sessions {
		s.close()
	}
}

// serverLog is the end of what the servers have said to their operator.
func (d *demo) serverLog() string {
	said, _ := os.ReadFile(filepath.Join(d.scratch, "log")) // none: nothing was said
	return string(said[max(0, len(said)-4096):])
}
