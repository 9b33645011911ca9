// Package mcpserver speaks MCP for the gateway: it lists the tools, decodes
// their arguments strictly, calls the gateway and renders what it answers.
//
// It is the first station of the line and the only importer of an MCP module.
// It promises that arguments reach the gateway only as the tool's published
// schema describes them, that every result is complete both as structured
// content and as text within one byte cap, that every refusal carries a stable
// code, that a panicking handler costs one call and never the daemon, and that
// every request read from a line connection is answered before it ends.
//
// It decides nothing: whether an action is permitted is the gateway's answer.
// It keeps no state beyond a connection, and its audit lines name tools, ids and
// outcomes, never the values of arguments or the output of commands.
package mcpserver

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codespace/gateway"
)

const instructions = `CodeSpace runs commands in sandboxed workspaces. ` +
	`Find a workspace with workspace_info. Start a program with exec_command; it answers with a process_id at once. ` +
	`Read its output with read_process: pass the cursor from the last answer and a wait_ms, until eof is true. ` +
	`eof only means that all output has been read, not that the command succeeded: process_status tells the exit code or signal. ` +
	`Read files with read and find. Change files with apply_patch: all of a patch or nothing, and with an operation_key it is safe to repeat. ` +
	`An error names its code, what happened and what to do next; a non-zero exit code is not an error of the tool.`

// Server is one MCP server, shared by every connection.
type Server struct {
	gateway *gateway.Gateway
	log     *slog.Logger
	sdk     *mcp.Server
}

// New builds the server in front of g. It reads nothing and starts nothing.
func New(g *gateway.Gateway, log *slog.Logger, version string) *Server {
	s := &Server{gateway: g, log: log}
	s.sdk = mcp.NewServer(
		&mcp.Implementation{Name: "codespace", Title: "CodeSpace", Version: version},
		&mcp.ServerOptions{
			Instructions: instructions,
			Logger:       slog.New(onlyErrors{log.Handler()}),
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		})
	s.sdk.AddReceivingMiddleware(s.recovering, s.principal, s.audit)
	s.add(tools())
	return s
}

func (s *Server) add(all []tool) {
	for _, t := range all {
		s.sdk.AddTool(&mcp.Tool{
			Name:         t.name,
			Title:        t.title,
			Description:  t.description,
			InputSchema:  json.RawMessage(t.input),
			OutputSchema: json.RawMessage(t.output),
			Annotations: &mcp.ToolAnnotations{
				ReadOnlyHint:    t.hints.readOnly,
				DestructiveHint: &t.hints.destructive,
				IdempotentHint:  t.hints.idempotent,
				OpenWorldHint:   &t.hints.openWorld,
			},
		}, s.handler(t))
	}
}

// onlyErrors passes on what the SDK logs as an error; its chatter about
// sessions is told better by the audit lines.
type onlyErrors struct{ slog.Handler }

func (h onlyErrors) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && h.Handler.Enabled(ctx, level)
}
