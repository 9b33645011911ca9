package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"codespace/gateway/mcpserver"
)

// FuzzLines sends any bytes as a whole session: the server must live, end, and
// answer each id at most as often as it was asked.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{"", "junk\n", ping, ping + ping, calling(1, "echo", `{"text":"a"}`), calling(1, "panics", `null`), "[]\n", "{}\n",
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{},"inputResponses":{"a":{}}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	s := mcpserver.NewBare(silent())
	s.Plant("echo", func(_ context.Context, text string) (string, error) { return text, nil })
	s.Plant("fails", func(context.Context, string) (string, error) { return "", errors.New("cannot") })
	s.Plant("panics", func(context.Context, string) (string, error) { panic("planted") })
	f.Fuzz(func(t *testing.T, data []byte, opened bool) {
		if opened {
			data = append([]byte(opening), data...)
		}
		var out bytes.Buffer
		if err := s.ServeLines(t.Context(), bytes.NewReader(data), &out, me); err != nil {
			t.Fatal(err)
		}
		asked := map[string]int{}
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			var m map[string]json.RawMessage
			if json.Unmarshal(line, &m) == nil {
				asked[canonical(m["id"])]++
			}
		}
		for _, a := range parseAnswers(t, &out) {
			if id := canonical(a.ID); id != "null" && a.Method == "" {
				asked[id]--
				if asked[id] < 0 {
					t.Errorf("id %s is answered too often", id)
				}
			}
		}
	})
}

// canonical writes an id in one way, however it was spelled.
func canonical(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return "null"
	}
	data, _ := json.Marshal(v)
	return string(data)
}
