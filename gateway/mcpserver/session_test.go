package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"codespace/gateway"
	"codespace/gateway/mcpserver"
)

var me = gateway.Principal{Name: "test"}

// answer is one line of the server.
type answer struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// toolResult is the result of a tools/call.
type toolResult struct {
	IsError    bool                    `json:"isError"`
	Structured map[string]any          `json:"structuredContent"`
	Content    []struct{ Text string } `json:"content"`
}

func (a answer) tool(t *testing.T) toolResult {
	t.Helper()
	var r toolResult
	if a.Error != nil || json.Unmarshal(a.Result, &r) != nil || len(r.Content) != 1 {
		t.Fatalf("not a tool result: %+v", a)
	}
	return r
}

func (a answer) code() int {
	if a.Error == nil {
		return 0
	}
	return a.Error.Code
}

// opening is how every client begins.
const opening = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

func calling(id any, tool, arguments string) string {
	encodedID, _ := json.Marshal(id)
	name, _ := json.Marshal(tool)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%s,"arguments":%s}}`+"\n", encodedID, name, arguments)
}

// script serves input to its end and returns every answer by id.
func script(t *testing.T, s *mcpserver.Server, input string) map[string]answer {
	t.Helper()
	var out bytes.Buffer
	if err := s.ServeLines(t.Context(), strings.NewReader(input), &out, me); err != nil {
		t.Fatalf("ServeLines: %v", err)
	}
	answers := map[string]answer{}
	for _, a := range parseAnswers(t, &out) {
		if _, twice := answers[string(a.ID)]; twice && string(a.ID) != "null" {
			t.Errorf("id %s is answered twice", a.ID)
		}
		answers[string(a.ID)] = a
	}
	return answers
}

func parseAnswers(t *testing.T, out io.Reader) []answer {
	t.Helper()
	var all []answer
	r := bufio.NewReader(out)
	for {
		text, err := r.ReadString('\n')
		if err == io.EOF && text == "" {
			return all
		}
		var a answer
		if err != nil || json.Unmarshal([]byte(text), &a) != nil {
			t.Fatalf("bad answer %.200q: %v", text, err)
		}
		all = append(all, a)
	}
}

// live is a connection a test talks over step by step.
type live struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	done chan error
}

func open(t *testing.T, ctx context.Context, s *mcpserver.Server) *live {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	l := &live{t: t, in: inW, out: bufio.NewReader(outR), done: make(chan error, 1)}
	go func() {
		err := s.ServeLines(ctx, inR, outW, me)
		outW.Close()
		l.done <- err
	}()
	t.Cleanup(func() { inW.Close(); outR.Close() })
	l.send(opening)
	l.next()
	return l
}

func (l *live) send(text string) {
	l.t.Helper()
	if _, err := io.WriteString(l.in, text); err != nil {
		l.t.Fatal(err)
	}
}

func (l *live) next() answer {
	l.t.Helper()
	text, err := l.out.ReadString('\n')
	if err != nil {
		l.t.Fatalf("no answer: %v", err)
	}
	var a answer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		l.t.Fatal(err)
	}
	return a
}
