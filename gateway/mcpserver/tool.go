package mcpserver

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codespace/gateway"
	"codespace/runner"
)

// tool is one entry of tools/list and what runs behind it.
type tool struct {
	name        string
	title       string
	description string
	hints       hints
	input       string // JSON schema; it also drives the decoding
	output      string // JSON schema
	// codes replaces INVALID_ARGUMENT where a value below an argument is wrong.
	codes map[string]runner.Code
	run   func(context.Context, *call) (reply, error)
}

// hints are the four annotations; every tool states all of them.
type hints struct{ readOnly, destructive, idempotent, openWorld bool }

// call is one decoded tools/call.
type call struct {
	gateway   *gateway.Gateway
	principal gateway.Principal
	arguments arguments
}

// tools lists every tool. A new one is a file beside the others and a line here.
func tools() []tool {
	return []tool{
		workspaceInfo(),
		readFile(),
		findFiles(),
		fileVersions(),
		applyPatch(),
		operationStatus(),
		execCommand(),
		readProcess(),
		writeStdin(),
		processStatus(),
		processList(),
		processResize(),
		terminateProcess(),
	}
}

// handler decodes, runs and renders; its errors are always tool errors.
func (s *Server) handler(t tool) mcp.ToolHandler {
	input := mustSchema(t.input)
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		record := recordOf(ctx)
		answer := func(err error) (*mcp.CallToolResult, error) {
			fault := s.fault(ctx, t.name, err)
			record.code = fault.Code
			return refusal(fault), nil
		}
		args, problem := decode(input, req.Params.Arguments)
		if problem != nil {
			return answer(problem.fault(t.codes))
		}
		record.note(args)
		r, err := t.run(ctx, &call{gateway: s.gateway, principal: principalOf(ctx), arguments: args})
		if err != nil {
			return answer(err)
		}
		result, err := r.result(largestPage)
		if err != nil {
			return answer(err)
		}
		record.code = ""
		return result, nil
	}
}

// fault turns any error into one a client may see. What it may not see is logged.
func (s *Server) fault(ctx context.Context, tool string, err error) *runner.Fault {
	var fault *runner.Fault
	if errors.As(err, &fault) {
		return fault
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return &runner.Fault{
			Code:    runner.Internal,
			Message: "the call was cancelled before its outcome was known",
			Next:    "look with process_status before calling again",
		}
	}
	s.log.ErrorContext(ctx, "tool failed", "tool", tool, "error", err)
	return internalFault()
}

func internalFault() *runner.Fault {
	return &runner.Fault{
		Code:    runner.Internal,
		Message: "the server failed inside",
		Next:    "ask the operator to read its log",
	}
}
