package mcpserver

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codespace/runner"
)

const callTool = "tools/call"

// recovering answers for a handler that panics: the SDK would let it end the daemon.
func (s *Server) recovering(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			s.log.ErrorContext(ctx, "handler panicked", "method", clip(method, 64), "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server failed inside"}
			if method == callTool {
				result, err = refusal(internalFault()), nil
			}
		}()
		return next(ctx, method, req)
	}
}

// principal names the caller: without one nothing is answered.
func (s *Server) principal(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		session, ok := sessionOf(ctx)
		if !ok {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the caller is not known"}
		}
		return next(context.WithValue(ctx, principalKey{}, session.principal), method, req)
	}
}

// record is what the audit line of one call says. It holds ids a client chose,
// clipped; the log's handler escapes them.
type record struct {
	workspace string
	process   string
	code      runner.Code // "" for a result
}

func recordOf(ctx context.Context) *record {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		return r
	}
	return &record{}
}

func (r *record) note(a arguments) {
	r.workspace = clip(a.text("workspace_id"), 64)
	r.process = clip(a.text("process_id"), 64)
}

// audit writes one line for every tools/call, also for one that panics.
func (s *Server) audit(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		params, ok := req.GetParams().(*mcp.CallToolParamsRaw)
		if method != callTool || !ok {
			return next(ctx, method, req)
		}
		r := &record{code: runner.Internal}
		start := time.Now()
		defer func() { s.auditLine(ctx, params.Name, r, time.Since(start)) }()
		result, err := next(context.WithValue(ctx, recordKey{}, r), method, req)
		if err != nil {
			r.code = "PROTOCOL"
		}
		return result, err
	}
}

func (s *Server) auditLine(ctx context.Context, tool string, r *record, took time.Duration) {
	outcome := string(r.code)
	if outcome == "" {
		outcome = "ok"
	}
	attrs := []slog.Attr{
		slog.String("principal", principalOf(ctx).Name),
		slog.String("tool", clip(tool, 64)),
		slog.String("outcome", outcome),
		slog.Duration("took", took),
	}
	if r.workspace != "" {
		attrs = append(attrs, slog.String("workspace", r.workspace))
	}
	if r.process != "" {
		attrs = append(attrs, slog.String("process", r.process))
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "call", attrs...)
}
