package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// step is one thing that is shown: a command, what talk has with some while they
// run, or else what other does.
type step struct {
	title  string
	needs  []string // programs of this host
	argv   []string
	limit  time.Duration                                // 0: timeLimit
	before func(context.Context) (said string, _ error) // shows that there is something to reach
	checks []check
	talk   func(context.Context, *session) (status, error) // the status of the command that ended last
	other  func(context.Context) (said, how string, wrong error)
}

// check says what is not as promised about a command that has ended.
type check func(status) error

func (d *demo) steps() []step {
	beside := filepath.Join(d.scratch, "beside")
	nap := fmt.Sprintf("sleep 600.%d", os.Getpid()) // whose it is can be told
	knock := []string{"bash", "-c", "cat </dev/tcp/127.0.0.1/" + d.gate.port()}
	return []step{
		{title: "A client connects and asks what there is", other: d.greet},
		{title: "A C project is compiled and tested", needs: []string{"gcc", "make"},
			argv: []string{"make", "-C", "c", "test"}, checks: []check{exits(0), says("4 of 4 tests passed")}},
		{title: "A Go module is tested, the second time from the cache", needs: []string{"go"},
			argv: []string{"sh", "-c", "cd go && go test ./... && go test ./..."}, checks: []check{exits(0), says("(cached)")}},
		{title: "Python reads the sources", needs: []string{"python3"},
			argv: []string{"python3", "lines.py"}, checks: []check{exits(0), says(`"c/leap.c": 1`)}},
		{title: "The work is committed", needs: []string{"git"},
			argv:   []string{"sh", "-c", "git add . && git commit --quiet --message=Leap && git log --stat --format='%h %an: %s'"},
			checks: []check{exits(0), says("Demo: Leap"), d.committed}},
		{title: "Files are found and read", other: d.look},
		{title: "A patch is checked, applied, recognised when it is sent again, and looked up; one of a protected path is refused", other: d.change},
		{title: "What was patched passes its tests", needs: []string{"gcc", "make"},
			argv: []string{"sh", "-c", "cat c/README && make -C c test"}, checks: []check{exits(0), says("knows the calendar", "4 of 4 tests passed")}},
		{title: "A program asks at its terminal, is given a larger one, and is answered", needs: []string{"python3"}, talk: d.answer, limit: liveLimit,
			checks: []check{exits(0), says("24 rows, 80 columns", "Who works here? ", "40 rows, 120 columns", "Good morning, Ada.")}},
		{title: "A server that one command runs is reached by another", needs: []string{"python3"}, talk: d.serve, limit: liveLimit,
			checks: []check{exits(0), says("Serving HTTP", `"GET /c/leap.c HTTP/1.1" 200`, "int leap(int year)"), d.gate.untouched}},
		{title: "Commands that only read run beside one that writes, and a second that would write is refused", talk: d.share, limit: liveLimit,
			checks: []check{exits(0), says("writing", "draft", "Read-only", "draft", "Read-only", "draft", "Read-only",
				"4 commands are running", "WORKSPACE_BUSY: ", "the next reads: final")}},
		{title: "A command that does not end is ended, its children too, and its output is kept",
			argv: []string{"sh", "-c", "echo this is kept; " + nap + " & " + nap}, limit: shortLimit,
			checks: []check{timesOut, says("this is kept"), gone(nap)}},
		{title: "The passwords of this host are not there to be read", before: shadow,
			argv: []string{"cat", "/etc/shadow"}, checks: []check{exits(1), says("/etc/shadow: No such file")}},
		{title: "What is written outside the workspace never reaches the host",
			argv:   []string{"sh", "-c", "echo mine > " + beside + "; ls " + d.scratch + "; echo mine > /usr/bin/true"},
			checks: []check{exits(2), says("/usr/bin/true: Read-only"), absent(beside)}},
		{title: "No network leads out, not even to a server on this machine", needs: []string{"bash"}, before: d.gate.knock(knock),
			argv: knock, checks: []check{exits(1), says("refused"), d.gate.untouched}},
		{title: "What the last command was confined by, as its receipt has it", other: d.receipt},
		{title: "The client goes, and the server with all it started", other: d.leave},
	}
}

// show shows one step.
func (d *demo) show(ctx context.Context, st step) {
	for _, tool := range st.needs {
		if d.tool(tool) == "" {
			d.leaveOut(st.title, tool)
			return
		}
	}
	d.begin(st.title)
	if st.other == nil {
		st.other = func(ctx context.Context) (string, string, error) { return d.command(ctx, st) }
	}
	said, how, wrong := st.other(ctx)
	d.body(said)
	d.end(how, wrong)
}

func (d *demo) command(ctx context.Context, st step) (said, how string, wrong error) {
	if st.talk == nil {
		d.note(fmt.Sprintf("exec_command %q", st.argv))
		st.talk = func(ctx context.Context, s *session) (status, error) { return s.run(ctx, st.argv) }
	}
	if st.before != nil {
		here, err := st.before(ctx)
		if err != nil {
			return here, "not tried: on the host it does not work either", err
		}
		d.body("on the host: " + here)
	}
	s, err := d.session(ctx, cmp.Or(st.limit, timeLimit))
	if err != nil {
		return d.serverLog(), "no server", err
	}
	end, err := st.talk(ctx, s)
	if err != nil {
		return end.output, "not run to its end", err
	}
	d.last = end
	for _, check := range st.checks {
		wrong = errors.Join(wrong, check(end))
	}
	return end.output, end.ending(), wrong
}

func (d *demo) greet(ctx context.Context) (said, how string, wrong error) {
	d.note("initialize, tools/list")
	s, err := d.session(ctx, timeLimit)
	if err != nil {
		return d.serverLog(), "not connected", err
	}
	list, err := s.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return "", "no list of tools", err
	}
	for _, t := range list.Tools {
		said += fmt.Sprintf("%-18s %s\n", t.Name, t.Title)
	}
	for _, name := range []string{"workspace_info", "exec_command", "read_process", "process_status", "terminate_process"} {
		if !strings.Contains(said, name+" ") {
			wrong = errors.Join(wrong, errors.New("there is no tool "+name))
		}
	}
	server := s.greeting.ServerInfo
	return said, fmt.Sprintf("%s %s speaks MCP %s", server.Name, server.Version, s.greeting.ProtocolVersion), wrong
}

// receipt checks the digest: it is over the layers, as JSON.
func (d *demo) receipt(context.Context) (said, how string, wrong error) {
	d.note("process_status")
	r := d.last.Receipt
	list, err := json.Marshal(r.Layers)
	if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(list)); err == nil && (sum != r.Digest || len(r.Layers) == 0) {
		err = fmt.Errorf("%d layers have the digest %s", len(r.Layers), sum)
	}
	return strings.Join(r.Layers, "\n"), r.Digest, err
}

func (d *demo) leave(context.Context) (said, how string, wrong error) {
	d.note("end of standard input")
	n := len(d.sessions)
	for limit, s := range d.sessions {
		wrong = errors.Join(wrong, s.close())
		delete(d.sessions, limit)
	}
	return "", fmt.Sprintf("%d servers exited with code 0", n), wrong
}

func exits(code int) check {
	return func(st status) error {
		if st.Termination != "exited" || st.Code == nil || *st.Code != code {
			return fmt.Errorf("it was to exit with code %d", code)
		}
		return nil
	}
}

func timesOut(st status) error {
	if st.Termination != "timeout" {
		return errors.New("the time limit was to end it")
	}
	return nil
}

// says wants these in the output, each after the one before.
func says(wanted ...string) check {
	return func(st status) error {
		rest := st.output
		for _, text := range wanted {
			_, after, found := strings.Cut(rest, text)
			if !found {
				return fmt.Errorf("it was to say %q", text)
			}
			rest = after
		}
		return nil
	}
}

// gone looks for a process of the host with this command line.
func gone(command string) check {
	return func(status) error {
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, line := range lines {
			words, _ := os.ReadFile(line) // it may have ended meanwhile
			if strings.TrimRight(strings.ReplaceAll(string(words), "\x00", " "), " ") == command {
				return fmt.Errorf("%s still runs, see %s", command, line)
			}
		}
		return err
	}
}

// absent looks on the host.
func absent(file string) check {
	return func(status) error {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the host has %s", file)
		}
		return nil
	}
}

func (d *demo) committed(status) error {
	_, err := os.Stat(filepath.Join(d.project(), ".git", "refs", "heads", "main"))
	return err
}

func shadow(context.Context) (string, error) {
	info, err := os.Stat("/etc/shadow")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("/etc/shadow is there, %d bytes", info.Size()), nil
}
