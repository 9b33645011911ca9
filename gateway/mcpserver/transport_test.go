package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codespace/gateway/mcpserver"
	"codespace/runner"
)

const ping = `{"jsonrpc":"2.0","id":"ping","method":"ping"}` + "\n"

func TestLineThatIsNoRequest(t *testing.T) {
	tests := []struct {
		name, line string
		id         string
		code       int
	}{
		{"junk", `hello`, "null", -32700},
		{"cut off", `{"jsonrpc":"2.0","id":1`, "null", -32700},
		{"two messages", `{"jsonrpc":"2.0","id":1,"method":"ping"}{}`, "null", -32700},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "null", -32700},
		{"too deep", strings.Repeat("[", 1001) + strings.Repeat("]", 1001), "null", -32700},
		{"far too deep", strings.Repeat("[", 1<<20), "null", -32700},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "null", -32600},
		{"empty batch", `[]`, "null", -32600},
		{"number", `17`, "null", -32600},
		{"no method", `{"jsonrpc":"2.0","id":1}`, "1", -32600},
		{"empty", `{}`, "null", -32600},
		{"wrong version", `{"jsonrpc":"1.0","id":"a","method":"ping"}`, `"a"`, -32600},
		{"no version", `{"id":2,"method":"ping"}`, "2", -32600},
		{"folded key", `{"jsonrpc":"2.0","id":2,"Method":"ping"}`, "2", -32600},
		{"method is a number", `{"jsonrpc":"2.0","id":3,"method":4}`, "3", -32600},
		{"long method", `{"jsonrpc":"2.0","id":3,"method":"` + strings.Repeat("m", 200) + `"}`, "3", -32600},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, "null", -32600},
		{"fraction id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, "null", -32600},
		{"id that would change", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, "null", -32600},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, "null", -32600},
		{"lone surrogate id", `{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`, "null", -32600},
		{"long id", `{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 300) + `","method":"ping"}`, "null", -32600},
		{"id twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, "null", -32600},
		{"params a list", `{"jsonrpc":"2.0","id":5,"method":"ping","params":[1]}`, "5", -32602},
		{"name twice", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a","name":"b"}}`, "5", -32602},
		{"many keys", `{"jsonrpc":"2.0","id":5,` + manyKeys(3000) + `}`, "null", -32600},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := script(t, mcpserver.NewBare(silent()), opening+tt.line+"\n"+ping)
			if got[tt.id].code() != tt.code || got[tt.id].Error.Message == "" {
				t.Errorf("answer is %+v, want code %d", got[tt.id], tt.code)
			}
			if len(got) != 3 || got[`"ping"`].Result == nil {
				t.Errorf("the session did not go on: %v", got)
			}
		})
	}
}

func manyKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":1`, i)
	}
	return strings.Join(keys, ",")
}

func TestLineWithoutAnswer(t *testing.T) {
	for _, line := range []string{
		"", "  \t", "\r",
		`{"jsonrpc":"2.0","id":9,"result":{}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}`,
		`{"jsonrpc":"2.0","method":"notifications/unknown"}`,
		`{"jsonrpc":"2.0","method":"ping"}`,
	} {
		if got := script(t, mcpserver.NewBare(silent()), opening+line+"\n"+ping); len(got) != 2 {
			t.Errorf("%q is answered: %v", line, got)
		}
	}
}

func TestLineLimit(t *testing.T) {
	padded := func(size int) string {
		head, tail := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"pad":"`, `"}}`
		return head + strings.Repeat("a", size-len(head)-len(tail)) + tail + "\n"
	}
	got := script(t, mcpserver.NewBare(silent()), opening+padded(mcpserver.MaxLine)+ping)
	if got["1"].Result == nil || len(got) != 3 {
		t.Errorf("a line of the limit is refused: %v", got)
	}
	got = script(t, mcpserver.NewBare(silent()), opening+padded(mcpserver.MaxLine+1)+ping)
	if refused := got["null"]; refused.code() != -32600 || !strings.Contains(refused.Error.Message, "33554432") {
		t.Errorf("a line over the limit gets %+v", refused)
	}
	if got[`"ping"`].Result == nil {
		t.Error("the session did not go on")
	}
}

func TestLastLineNeedsNoNewline(t *testing.T) {
	got := script(t, mcpserver.NewBare(silent()), opening+strings.TrimSpace(ping))
	if got[`"ping"`].Result == nil {
		t.Errorf("not answered: %v", got)
	}
}

func TestProtocol(t *testing.T) {
	early := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n"
	got := script(t, mcpserver.NewBare(silent()), early+opening+
		`{"jsonrpc":"2.0","id":2,"method":"no/such"}`+"\n"+
		calling(3, "no_such", "{}")+
		`{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n"+
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":7}}`+"\n"+
		`{"jsonrpc":"2.0","id":6,"method":"tools/call"}`+"\n")
	for id, code := range map[string]int{"1": -32600, "2": -32601, "3": -32602, "4": -32600, "5": -32602, "6": -32600} {
		if got[id].code() != code {
			t.Errorf("id %s: %+v, want code %d", id, got[id], code)
		}
		if message := got[id].Error.Message; strings.Contains(message, "mcp.") || len(message) > 256 {
			t.Errorf("id %s: message tells too much: %s", id, message)
		}
	}
	if init := string(got[`"init"`].Result); !strings.Contains(init, `"protocolVersion":"2025-11-25"`) || !strings.Contains(init, "exec_command") {
		t.Errorf("initialize: %s", init)
	}
}

// A stateless request of 2026-07-28 that asks to listen must not hold the end back.
func TestListenDoesNotHoldTheEndBack(t *testing.T) {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	got := script(t, mcpserver.NewBare(silent()), `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+meta+`}}`+"\n")
	if len(got["1"].Result) == 0 {
		t.Errorf("not answered: %v", got)
	}
}

func TestPanicCostsOneCall(t *testing.T) {
	var log strings.Builder
	s := mcpserver.NewBare(textLog(&log))
	s.Plant("panics", func(context.Context, string) (string, error) { panic("secret /host/path") })
	got := script(t, s, opening+calling(1, "panics", `{}`)+ping)
	r := got["1"].tool(t)
	if !r.IsError || r.Structured["code"] != "INTERNAL" || strings.Contains(string(got["1"].Result), "secret") {
		t.Errorf("answer: %s", got["1"].Result)
	}
	if got[`"ping"`].Result == nil || !strings.Contains(log.String(), "secret /host/path") || !strings.Contains(log.String(), "outcome=INTERNAL") {
		t.Errorf("log: %s", log.String())
	}
}

func TestHundredCallsAtOnce(t *testing.T) {
	const n = 100
	s := mcpserver.NewBare(silent())
	var together sync.WaitGroup
	together.Add(n)
	s.Plant("echo", func(_ context.Context, text string) (string, error) {
		together.Done()
		together.Wait()
		return text, nil
	})
	input := opening
	for i := range n {
		input += calling(i, "echo", fmt.Sprintf(`{"text":"%d"}`, i))
	}
	got := script(t, s, input)
	for i := range n {
		if r := got[fmt.Sprint(i)].tool(t); r.Structured["text"] != fmt.Sprint(i) {
			t.Errorf("call %d got %v", i, r.Structured)
		}
	}
}

// blocked is a read_process of a process that never writes.
func blocked(ctx context.Context, _ string) (string, error) {
	ctx, stop := mcpserver.Waiting(ctx)
	defer stop()
	got, err := mcpserver.Page{Max: 100, Wait: 20 * time.Second}.Read(ctx, func(ctx context.Context, r runner.ReadRequest) (runner.ReadResult, error) {
		timer := time.NewTimer(r.Wait)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return runner.ReadResult{}, ctx.Err()
		case <-timer.C:
			return runner.ReadResult{State: runner.Running}, nil
		}
	})
	return string(got.Structured), err
}

func TestWaitEndsWith(t *testing.T) {
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n"
	ends := map[string]func(l *live, stop context.CancelFunc) (goesOn bool){
		"end of input": func(l *live, _ context.CancelFunc) bool { l.in.Close(); return false },
		"shutdown":     func(_ *live, stop context.CancelFunc) bool { stop(); return false },
		"cancellation": func(l *live, _ context.CancelFunc) bool { l.send(cancel); return true },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := mcpserver.NewBare(silent())
				s.Plant("wait", blocked)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				l := open(t, ctx, s)
				l.send(calling(1, "wait", `{}`))
				synctest.Wait()
				start := time.Now()
				goesOn := end(l, stop)
				if r := l.next().tool(t); r.IsError || time.Since(start) > 0 {
					t.Errorf("answer after %v: %+v", time.Since(start), r)
				}
				if goesOn {
					l.send(ping)
					l.next()
					l.in.Close()
				}
				if err := <-l.done; err != nil {
					t.Errorf("ServeLines: %v", err)
				}
			})
		})
	}
}

func TestTooManyInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mcpserver.NewBare(silent())
		s.Plant("wait", blocked)
		l := open(t, t.Context(), s)
		for i := range mcpserver.MaxInFlight {
			l.send(calling(i, "wait", `{}`))
		}
		l.send(calling("more", "wait", `{}`))
		if r := l.next().tool(t); r.Structured["code"] != "LIMIT_EXCEEDED" || r.Structured["retryable"] != true {
			t.Errorf("one too many: %+v", r)
		}
		l.send(ping)
		if a := l.next(); a.code() != -32000 {
			t.Errorf("ping: %+v", a)
		}
		l.send(calling(7, "wait", `{}`))
		if a := l.next(); string(a.ID) != "null" || a.code() != -32600 {
			t.Errorf("id in use: %+v", a)
		}
		l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}` + "\n")
		if a := l.next(); string(a.ID) != "7" {
			t.Errorf("cancellation: %+v", a)
		}
		l.send(calling(7, "wait", `{}`)) // free again
		l.in.Close()
		for range mcpserver.MaxInFlight {
			l.next()
		}
		if err := <-l.done; err != nil {
			t.Error(err)
		}
	})
}

type brokenPipe struct{ after int }

func (b *brokenPipe) Write(p []byte) (int, error) {
	if b.after--; b.after < 0 {
		return 0, syscall.EPIPE
	}
	return len(p), nil
}

func TestBrokenOutputEndsTheSession(t *testing.T) {
	for after := range 3 {
		synctest.Test(t, func(t *testing.T) {
			s := mcpserver.NewBare(silent())
			s.Plant("wait", blocked)
			in, w := io.Pipe() // never ends by itself
			done := make(chan error, 1)
			start := time.Now()
			go func() { done <- s.ServeLines(t.Context(), in, &brokenPipe{after: after}, me); in.Close() }()
			for _, text := range []string{opening, calling(1, "wait", `{}`), ping, "junk\n", ping} {
				if _, err := io.WriteString(w, text); err != nil {
					break
				}
			}
			if err := <-done; !errors.Is(err, syscall.EPIPE) {
				t.Errorf("after %d writes: %v", after, err)
			}
			if waited := time.Since(start); waited > 0 {
				t.Errorf("the session waited %v", waited)
			}
		})
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, syscall.EIO }

func TestBrokenInputIsAnError(t *testing.T) {
	err := mcpserver.NewBare(silent()).ServeLines(t.Context(), failing{}, io.Discard, me)
	if !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
}

func TestOfficialClient(t *testing.T) {
	s := mcpserver.NewBare(silent())
	s.Plant("whoami", func(ctx context.Context, text string) (string, error) {
		return text + mcpserver.PrincipalOf(ctx).Name, nil
	})
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.ServeLines(t.Context(), inR, outW, me) }()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "official", Version: "1"}, nil).
		Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami", Arguments: map[string]any{"text": "<é> "}})
	if err != nil || got.StructuredContent.(map[string]any)["text"] != "<é> test" {
		t.Errorf("got %+v, %v", got, err)
	}
	client.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
