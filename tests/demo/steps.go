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

// step is one thing that is shown: a command, or else what own does.
type step struct {
	title string
	needs []string // programs of this host
	argv  []string
	limit time.Duration // 0: timeLimit
	// control shows, before the command runs, that there is something to reach.
	control func(context.Context) (string, error)
	// check says what is not as promised, nil if all is.
	check func(status) error
	doing string // instead of argv, where own does it
	own   func(context.Context) (said, how string, wrong error)
}

func (d *demo) steps() []step {
	port := fmt.Sprint(d.gate.port())
	knock := []string{"bash", "-c", "cat </dev/tcp/127.0.0.1/" + port}
	beside := filepath.Join(d.scratch, "beside")
	return []step{
		{title: "A client connects and asks what there is", doing: "initialize, tools/list", own: d.greet},
		{title: "A C project is compiled and tested", needs: []string{"gcc", "make"},
			argv: []string{"make", "-C", "c", "test"}, check: exits(0, "4 of 4 tests passed")},
		{title: "A Go module is tested, the second time from the cache", needs: []string{"go"},
			argv: []string{"sh", "-c", "cd go && go test ./... && go test ./..."}, check: exits(0, "ok", "(cached)")},
		{title: "Python reads the sources", needs: []string{"python3"},
			argv: []string{"python3", "lines.py"}, check: exits(0, `"c/leap.c": 1`)},
		{title: "The work is committed", needs: []string{"git"},
			argv:  []string{"sh", "-c", "git add . && git commit --quiet --message='Know leap years' && git log --stat --oneline"},
			check: all(exits(0, "Know leap years", "go/leap.go"), d.committed)},
		{title: "A command that does not end is ended, its children too, and its output is kept", limit: shortLimit,
			argv: []string{"sh", "-c", "echo 'this is kept'; sleep 600 & sleep 600"}, check: timesOut("this is kept")},
		{title: "The passwords of the host are not there to be read", control: d.shadow,
			argv: []string{"cat", "/etc/shadow"}, check: exits(1, "/etc/shadow: No such file")},
		{title: "Nothing outside the workspace can be written", control: d.writeBeside(beside),
			argv:  []string{"sh", "-c", "echo no > " + beside + "; echo no > /usr/bin/true; ls " + d.scratch},
			check: all(exits(0, "project"), d.untouched(beside))},
		{title: "No network leads out, not even to a server on this machine", needs: []string{"bash"}, control: d.gate.control(knock),
			argv: knock, check: all(exits(1, "refused"), d.gate.untouched)},
		{title: "What the last command was confined by, as the kernel shows it", doing: "process_status: its receipt", own: d.receipt},
		{title: "The client goes, and the server and all it started with it", doing: "end of standard input", own: d.leave},
	}
}

// step shows one step.
func (d *demo) step(ctx context.Context, st step) {
	for _, tool := range st.needs {
		if d.tool(tool) == "" {
			d.leaveOut(st.title, tool)
			return
		}
	}
	if st.own == nil {
		st.doing = shellWords(st.argv)
		st.own = func(ctx context.Context) (string, string, error) { return d.command(ctx, st) }
	}
	d.begin(st.title, st.doing)
	said, how, wrong := st.own(ctx)
	d.body(said)
	d.end(how, wrong)
}

func (d *demo) command(ctx context.Context, st step) (said, how string, wrong error) {
	if st.control != nil {
		here, err := st.control(ctx)
		if err != nil {
			return here, "not tried: on the host it does not work either", err
		}
		d.body("on the host: " + here)
	}
	s, err := d.session(ctx, cmp.Or(st.limit, timeLimit))
	if err != nil {
		return "", "no server", err
	}
	end, err := s.run(ctx, st.argv)
	if err != nil {
		return end.output, "not run to its end", err
	}
	d.last = end
	return end.output, end.ending(), st.check(end)
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

func (d *demo) greet(ctx context.Context) (said, how string, wrong error) {
	s, err := d.session(ctx, timeLimit)
	if err != nil {
		return d.serverLog(), "not connected", err
	}
	list, err := s.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return "", "no list of tools", err
	}
	names := map[string]bool{}
	for _, t := range list.Tools {
		names[t.Name] = true
		said += fmt.Sprintf("%-18s %s\n", t.Name, t.Title)
	}
	for _, name := range []string{"workspace_info", "exec_command", "read_process", "process_status", "terminate_process"} {
		if !names[name] {
			wrong = errors.Join(wrong, errors.New("there is no tool "+name))
		}
	}
	return said, fmt.Sprintf("%s %s speaks MCP %s", s.greeting.ServerInfo.Name, s.greeting.ServerInfo.Version, s.greeting.ProtocolVersion), wrong
}

// receipt checks the digest: it is over the layers, as JSON.
func (d *demo) receipt(context.Context) (said, how string, wrong error) {
	r := d.last.Receipt
	list, err := json.Marshal(r.Layers)
	if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(list)); err == nil && sum != r.Digest {
		err = fmt.Errorf("the layers have the digest %s", sum)
	}
	if len(r.Layers) == 0 {
		err = errors.New("there are no layers")
	}
	return strings.Join(r.Layers, "\n"), r.Digest, err
}

func (d *demo) leave(context.Context) (said, how string, wrong error) {
	n := len(d.sessions)
	for limit, s := range d.sessions {
		wrong = errors.Join(wrong, s.close())
		delete(d.sessions, limit)
	}
	if left, _ := os.ReadDir(filepath.Join(d.scratch, "run", "codespace")); len(left) > 0 {
		wrong = errors.Join(wrong, fmt.Errorf("%s is left in the run directory", left[0].Name()))
	}
	return "", fmt.Sprintf("%d servers exited with code 0", n), wrong
}

// exits checks for a command's own exit code, and for text in its output.
func exits(code int, wanted ...string) func(status) error {
	return func(st status) error {
		if st.Termination != "exited" || st.Code == nil || *st.Code != code {
			return fmt.Errorf("it was to exit with code %d", code)
		}
		return contains(st.output, wanted)
	}
}

func timesOut(wanted ...string) func(status) error {
	return func(st status) error {
		if st.Termination != "timeout" {
			return errors.New("the time limit was to end it")
		}
		return contains(st.output, wanted)
	}
}

func contains(output string, wanted []string) error {
	for _, w := range wanted {
		if !strings.Contains(output, w) {
			return fmt.Errorf("its output was to have %q in it", w)
		}
	}
	return nil
}

func all(checks ...func(status) error) func(status) error {
	return func(st status) error {
		for _, check := range checks {
			if err := check(st); err != nil {
				return err
			}
		}
		return nil
	}
}

func (d *demo) committed(status) error {
	_, err := os.Stat(filepath.Join(d.project(), ".git", "refs", "heads", "main"))
	return err
}

func (d *demo) shadow(context.Context) (string, error) {
	info, err := os.Stat("/etc/shadow")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("/etc/shadow is there, %d bytes", info.Size()), nil
}

func (d *demo) writeBeside(file string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		if err := os.WriteFile(file, nil, 0o666); err != nil {
			return "", err
		}
		return file + " can be written", os.Remove(file)
	}
}

func (d *demo) untouched(file string) func(status) error {
	return func(status) error {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s was written", file)
		}
		return nil
	}
}
