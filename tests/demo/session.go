package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

const (
	patience   = 20 * time.Second // for a server to end once its client is gone
	longestRun = 60               // of a path that a socket's, at most 107 bytes (unix(7)), is to begin with
)

// session is one server, started by us, and the client that talks to it.
type session struct {
	*client.Client
	server    *exec.Cmd
	greeting  *mcp.InitializeResult
	workspace string
}

// connect starts codespace mcp and greets it. Nothing of our environment goes
// along: its state and its sockets lie in the scratch directory too.
func (d *demo) connect(ctx context.Context, limit time.Duration) (*session, error) {
	cmd := exec.Command(d.program, append([]string{"mcp", "--timeout", limit.String()}, d.flags...)...)
	cmd.Env = []string{"PATH=" + view, "HOME=" + d.dir("home"), "XDG_STATE_HOME=" + d.dir("state")}
	if run := d.dir("run"); len(run) <= longestRun {
		cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+run)
	}
	log, err := os.OpenFile(filepath.Join(d.scratch, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &session{Client: client.NewClient(transport.NewIO(out, in, nil)), server: cmd}
	if err := s.greet(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// dir makes a directory of the servers' own.
func (d *demo) dir(name string) string {
	dir := filepath.Join(d.scratch, name)
	os.Mkdir(dir, 0o700) // whoever needs it says that it is not there
	return dir
}

func (s *session) greet(ctx context.Context) (err error) {
	if err := s.Start(ctx); err != nil {
		return err
	}
	hello := mcp.InitializeRequest{}
	hello.Params.ClientInfo = mcp.Implementation{Name: "codespace-demo", Version: "1"}
	hello.Params.ProtocolVersion = mcp.LATEST_LEGACY_PROTOCOL_VERSION
	if s.greeting, err = s.Initialize(ctx, hello); err != nil {
		return err
	}
	all, err := call[struct {
		Workspaces []struct {
			ID string `json:"workspace_id"`
		} `json:"workspaces"`
	}](ctx, s, "workspace_info", map[string]any{})
	if err == nil && len(all.Workspaces) != 1 {
		err = fmt.Errorf("%d workspaces, not one", len(all.Workspaces))
	}
	if err != nil {
		return err
	}
	s.workspace = all.Workspaces[0].ID
	return nil
}

// close ends the connection; the server then ends by itself, with status 0.
func (s *session) close() error {
	hung := time.AfterFunc(patience, func() { s.server.Process.Kill() })
	defer hung.Stop()
	return errors.Join(s.Client.Close(), s.server.Wait())
}

// call calls a tool and reads its structured result.
func call[T any](ctx context.Context, s *session, tool string, arguments map[string]any) (T, error) {
	var result T
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = tool, arguments
	got, err := s.CallTool(ctx, request)
	if err != nil {
		return result, fmt.Errorf("%s: %w", tool, err)
	}
	if got.IsError {
		var text strings.Builder
		for _, c := range got.Content {
			text.WriteString(mcp.GetTextFromContent(c))
		}
		return result, fmt.Errorf("%s: %s", tool, text.String())
	}
	raw, err := json.Marshal(got.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, &result)
	}
	return result, err
}

// status is what process_status tells, and the output.
type status struct {
	ID          string    `json:"process_id"`
	State       string    `json:"state"`
	Termination string    `json:"termination"`
	Code        *int      `json:"exit_code"`
	Signal      string    `json:"signal"`
	Started     time.Time `json:"started_at"`
	Ended       time.Time `json:"ended_at"`
	Usage       struct {
		CPU        int64 `json:"cpu_ms"`
		PeakMemory int64 `json:"peak_memory_bytes"`
	} `json:"usage"`
	Receipt struct {
		Digest string   `json:"digest"`
		Layers []string `json:"layers"`
	} `json:"receipt"`

	output string
}

// run has a command run and reads it to its end, as an agent would.
func (s *session) run(ctx context.Context, argv []string) (status, error) {
	id, err := s.start(ctx, argv, nil)
	if err != nil {
		return status{}, err
	}
	return s.end(ctx, id)
}

// start has a command started; more is what else the call says.
func (s *session) start(ctx context.Context, argv []string, more map[string]any) (id string, _ error) {
	arguments := map[string]any{"workspace_id": s.workspace, "command": argv}
	maps.Copy(arguments, more)
	started, err := call[status](ctx, s, "exec_command", arguments)
	return started.ID, err
}

// end reads a command to its end.
func (s *session) end(ctx context.Context, id string) (status, error) {
	output, err := s.read(ctx, id, "")
	if err != nil {
		return status{output: output}, err
	}
	for {
		// The end of the output may be seen a moment before the end of the command.
		st, err := call[status](ctx, s, "process_status", map[string]any{"process_id": id})
		if err != nil || st.State == "exited" {
			st.output = output
			return st, err
		}
	}
}

// until reads a command until it has said text.
func (s *session) until(ctx context.Context, id, text string) (string, error) {
	output, err := s.read(ctx, id, text)
	if err == nil && !strings.Contains(output, text) {
		err = fmt.Errorf("it ended without saying %q", text)
	}
	return output, err
}

// write gives a command input.
func (s *session) write(ctx context.Context, id, data string) error {
	wrote, err := call[struct {
		Bytes int `json:"accepted_bytes"`
	}](ctx, s, "write_stdin", map[string]any{"process_id": id, "data": data})
	if err == nil && wrote.Bytes != len(data) {
		err = fmt.Errorf("write_stdin: %d bytes accepted of %d", wrote.Bytes, len(data))
	}
	return err
}

// terminate ends a command. One that has ended already is left as it is.
func (s *session) terminate(ctx context.Context, id string) error {
	_, err := call[struct{}](ctx, s, "terminate_process", map[string]any{"process_id": id})
	return err
}

// read reads from the start, until text has come if there is one, else to the end.
func (s *session) read(ctx context.Context, id, text string) (string, error) {
	var output strings.Builder
	for cursor := int64(0); ; {
		part, err := call[struct {
			Chunk  string `json:"chunk"`
			Cursor int64  `json:"cursor"`
			EOF    bool   `json:"eof"`
		}](ctx, s, "read_process", map[string]any{"process_id": id, "cursor": cursor, "wait_ms": 20000})
		output.WriteString(part.Chunk)
		if err != nil || part.EOF || text != "" && strings.Contains(output.String(), text) {
			return output.String(), err
		}
		cursor = part.Cursor
	}
}
