package mcpserver

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"codespace/gateway"
	"codespace/runner"
	"codespace/runner/files"
)

const (
	MaxLine     = maxLine
	MaxInFlight = maxInFlight
	LargestPage = largestPage
	SmallestCap = smallestCap
)

// NewBare builds a server that has none of the real tools.
func NewBare(log *slog.Logger) *Server {
	s := New(nil, log, "test")
	for _, t := range tools() {
		s.sdk.RemoveTools(t.name)
	}
	return s
}

// Plant adds a tool that takes a text and answers with one.
func (s *Server) Plant(name string, run func(ctx context.Context, text string) (string, error)) {
	s.add([]tool{{
		name:   name,
		input:  `{"type":"object","additionalProperties":false,"properties":{"text":{"type":"string"}}}`,
		output: `{"type":"object"}`,
		run: func(ctx context.Context, c *call) (reply, error) {
			text, err := run(ctx, c.arguments.text("text"))
			return reply{header: "planted", value: map[string]string{"text": text}}, err
		},
	}})
}

// PrincipalOf is who a planted tool was called by.
func PrincipalOf(ctx context.Context) gateway.Principal { return principalOf(ctx) }

// Waiting is what the real tools wait with.
func Waiting(ctx context.Context) (context.Context, context.CancelFunc) { return waiting(ctx) }

// ToolInputs maps every tool to its input schema.
func ToolInputs() map[string]string {
	inputs := map[string]string{}
	for _, t := range tools() {
		inputs[t.name] = t.input
	}
	return inputs
}

// Decode decodes arguments as the named tool does.
func Decode(name, unsafe string) (map[string]any, *runner.Fault) {
	for _, t := range tools() {
		if t.name != name {
			continue
		}
		args, p := decode(mustSchema(t.input), json.RawMessage(unsafe))
		if p != nil {
			return nil, p.fault(t.codes)
		}
		return args, nil
	}
	panic("no tool " + name)
}

var (
	CheckCommand = checkCommand
	JSONCost     = jsonCost
)

// Page is a request for output as tests write it.
type Page struct {
	Cursor int64
	Max    int
	Wait   time.Duration
	Exact  bool
}

// Answer is a rendered result.
type Answer struct {
	Structured []byte
	Text       string
	IsError    bool
}

// Read reads a page through read and renders it.
func (p Page) Read(ctx context.Context, read func(context.Context, runner.ReadRequest) (runner.ReadResult, error)) (Answer, error) {
	inner := page{process: "proc_0123456789abcdef0123456789abcdef", cursor: p.Cursor, max: p.Max, wait: p.Wait, exact: p.Exact}
	got, err := inner.fetch(ctx, read)
	if err != nil {
		return Answer{}, err
	}
	return rendering(inner.show(got)), nil
}

func rendering(r reply) Answer {
	out, err := r.render()
	if err != nil {
		panic(err)
	}
	return Answer{Structured: out.structured, Text: out.text}
}

func StatusAnswer(st runner.Status) Answer          { return rendering(statusReply(st)) }
func DispatchAnswer(d gateway.Dispatch) Answer      { return rendering(dispatched(d)) }
func TerminatedAnswer(id string) Answer             { return rendering(terminated(id)) }
func WorkspaceAnswer(w gateway.Workspace) Answer    { return rendering(workspaceDetail(w)) }
func WorkspacesAnswer(w []gateway.Workspace) Answer { return rendering(workspaceList(w)) }

func FoundAnswer(f files.FindResult) Answer { return rendering(found(f, len(f.Paths))) }
func VersionsAnswer(v []files.Version, from, total int) Answer {
	return rendering(versions(v, from, total))
}

// FileAnswer is a part of a file in a result of at most so many bytes.
func FileAnswer(path string, most int, exact bool, got files.ReadResult) Answer {
	return rendering(part{path: path, max: most, exact: exact}.show(got))
}

func FaultAnswer(f *runner.Fault) Answer {
	result := refusal(f)
	data, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	var wire struct {
		Structured json.RawMessage         `json:"structuredContent"`
		Content    []struct{ Text string } `json:"content"`
		IsError    bool                    `json:"isError"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		panic(err)
	}
	return Answer{Structured: wire.Structured, Text: wire.Content[0].Text, IsError: wire.IsError}
}

// ChangesText is the text of an answer about a patch.
func ChangesText(p gateway.Patched) string {
	out, err := patchReply(p).render()
	if err != nil {
		panic(err)
	}
	return out.text
}
