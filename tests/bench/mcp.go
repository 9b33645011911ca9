package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// mcpSide is a codespace mcp process and our end of its standard streams.
type mcpSide struct {
	*ground
	server *exec.Cmd
	to     io.WriteCloser
	from   *bufio.Reader
	id     int
}

// overMCP is a command as an agent sees it: three calls, one after the other.
func overMCP(ctx context.Context, g *ground) (*subject, error) {
	m, err := startMCP(ctx, g)
	if err != nil {
		return nil, err
	}
	return &subject{name: "exec_command and a waiting read_process, over MCP (stdio)", sample: m.sample, close: m.close}, nil
}

func startMCP(ctx context.Context, g *ground) (*mcpSide, error) {
	m := &mcpSide{ground: g, server: g.codespace(context.WithoutCancel(ctx), "mcp", "--workspace", g.workspace.Root)}
	var err error
	if m.to, err = m.server.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := m.server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	m.from = bufio.NewReader(out)
	if err := m.server.Start(); err != nil {
		return nil, err
	}
	err = m.request("initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "bench", "version": "1"},
	}, &struct{}{})
	if err == nil {
		err = m.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	}
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *mcpSide) close() {
	m.to.Close()
	hung := time.AfterFunc(patience, func() { m.server.Process.Kill() })
	defer hung.Stop()
	m.server.Wait()
}

func (m *mcpSide) send(message map[string]any) error {
	line, err := json.Marshal(message)
	if err == nil {
		_, err = m.to.Write(append(line, '\n'))
	}
	return err
}

// request waits for the next message, which is the answer: we ask one thing at a
// time and this server tells nothing unasked.
func (m *mcpSide) request(method string, params map[string]any, result any) error {
	m.id++
	hung := time.AfterFunc(patience, func() { m.server.Process.Kill() })
	defer hung.Stop()
	if err := m.send(map[string]any{"jsonrpc": "2.0", "id": m.id, "method": method, "params": params}); err != nil {
		return err
	}
	line, err := m.from.ReadBytes('\n')
	if err != nil {
		return err
	}
	var answer struct {
		ID     int             `json:"id"`
		Error  json.RawMessage `json:"error"`
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return err
	}
	if answer.ID != m.id || answer.Error != nil {
		return fmt.Errorf("%s was answered with %.300s", method, line)
	}
	return json.Unmarshal(answer.Result, result)
}

// told is what we want to know of the results of the three tools.
type told struct {
	ProcessID string `json:"process_id"`
	EOF       bool   `json:"eof"`
	State     string `json:"state"`
	ExitCode  *int   `json:"exit_code"`
}

func (m *mcpSide) call(tool string, arguments map[string]any) (told, error) {
	var result struct {
		IsError    bool            `json:"isError"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	var t told
	err := m.request("tools/call", map[string]any{"name": tool, "arguments": arguments}, &result)
	if err == nil && result.IsError {
		err = fmt.Errorf("%s: %s", tool, result.Structured)
	}
	if err == nil {
		err = json.Unmarshal(result.Structured, &t)
	}
	return t, err
}

func (m *mcpSide) sample(ctx context.Context, w *stopwatch) error {
	w.start()
	process, err := m.call("exec_command", map[string]any{"workspace_id": m.workspace.ID, "command": []string{command}})
	if err != nil {
		return err
	}
	w.lap("exec_command: confirmed")
	for t := process; !t.EOF; {
		if t, err = m.call("read_process", map[string]any{"process_id": process.ProcessID, "wait_ms": 20000}); err != nil {
			return err
		}
	}
	w.lap("read_process: end of output")
	for { // no part of the time: that it ended well
		t, err := m.call("process_status", map[string]any{"process_id": process.ProcessID})
		if err != nil || ctx.Err() != nil {
			return err
		}
		if t.State != "exited" {
			continue
		}
		if t.ExitCode == nil || *t.ExitCode != 0 {
			return fmt.Errorf("%s did not exit with code 0", command)
		}
		return nil
	}
}
