package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"codespace/gateway/mcpserver"
	"codespace/runner"
)

// output is all that a process has written.
type output struct {
	data []byte
	lost int64 // bytes no longer kept
	eof  bool
}

func (o output) read(_ context.Context, r runner.ReadRequest) (runner.ReadResult, error) {
	end := int64(len(o.data))
	start := min(max(r.Cursor, o.lost), end)
	next := min(start+int64(r.MaxBytes), end)
	return runner.ReadResult{
		Chunk:        o.data[start:next],
		Cursor:       next,
		EOF:          o.eof && next == end,
		Lost:         max(0, o.lost-r.Cursor),
		RetainedFrom: o.lost,
		State:        runner.Running,
	}, nil
}

type shown struct {
	Chunk        string `json:"chunk"`
	Cursor       int64  `json:"cursor"`
	EOF          bool   `json:"eof"`
	Lost         int64  `json:"output_lost"`
	RetainedFrom int64  `json:"retained_from"`
	State        string `json:"state"`
	Encoding     string `json:"encoding"`
}

func readPage(t *testing.T, p mcpserver.Page, o output) shown {
	t.Helper()
	a, err := p.Read(t.Context(), o.read)
	if err != nil {
		t.Fatal(err)
	}
	limit := max(p.Max, mcpserver.SmallestCap)
	text, _ := json.Marshal(a.Text)
	if len(a.Structured) > limit || len(text) > limit {
		t.Fatalf("%+v: %d and %d bytes, the cap is %d", p, len(a.Structured), len(text), limit)
	}
	var s shown
	if err := json.Unmarshal(a.Structured, &s); err != nil {
		t.Fatal(err)
	}
	if _, body, ok := strings.Cut(a.Text, "\n"); !ok || body != s.Chunk {
		t.Fatalf("the text block is not complete: %.100q", a.Text)
	}
	return s
}

// readAll reads o to its end, page after page.
func readAll(t *testing.T, p mcpserver.Page, o output) string {
	t.Helper()
	var all strings.Builder
	for range len(o.data) + 1 {
		s := readPage(t, p, o)
		all.WriteString(s.Chunk)
		if used := s.Cursor - p.Cursor; used > int64(max(p.Max, utf8.UTFMax)) || used == 0 && !s.EOF {
			t.Fatalf("%+v: went from %d to %d", p, p.Cursor, s.Cursor)
		}
		p.Cursor = s.Cursor
		if s.EOF {
			return all.String()
		}
		if p.Exact { // each page is padded by itself
			all.WriteByte('\n')
		}
	}
	t.Fatalf("%+v: no end", p)
	return ""
}

func unpack(t *testing.T, pages string) []byte {
	t.Helper()
	var all []byte
	for page := range strings.SplitSeq(pages, "\n") {
		data, err := base64.StdEncoding.DecodeString(page)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data...)
	}
	return all
}

func TestPagesJoinToTheOutput(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("ab<&>\"\\\n\t\x00\x1b\x7fé\u2028\u2029\uFFFD漢😀")
	for range 300 {
		text := make([]rune, random.IntN(3000))
		for i := range text {
			text[i] = alphabet[random.IntN(len(alphabet))]
		}
		o := output{data: []byte(string(text)), eof: true}
		p := mcpserver.Page{Max: 1 + random.IntN(4000)}
		if got := readAll(t, p, o); got != string(text) {
			t.Fatalf("max %d: text changed", p.Max)
		}
		p.Exact = true
		if got := unpack(t, readAll(t, p, o)); !bytes.Equal(got, o.data) {
			t.Fatalf("max %d: bytes changed", p.Max)
		}
	}
}

func TestAnyBytesStayUnderTheCapAndProgress(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		o := output{data: make([]byte, 1+random.IntN(5000)), eof: true}
		for i := range o.data {
			o.data[i] = byte(random.Uint32()) >> (random.Uint32() % 8)
		}
		p := mcpserver.Page{Max: 1 + random.IntN(1<<random.IntN(17)), Exact: random.IntN(2) == 0}
		got := readAll(t, p, o)
		if p.Exact && !bytes.Equal(unpack(t, got), o.data) {
			t.Fatal("bytes changed")
		}
		if whole := string([]rune(string(o.data))); !p.Exact && got != whole {
			t.Fatalf("max %d: shown text depends on the pages", p.Max)
		}
	}
}

func TestLargePageIsUsed(t *testing.T) {
	plain := output{data: bytes.Repeat([]byte("a"), 100_000)}
	if s := readPage(t, mcpserver.Page{Max: mcpserver.LargestPage}, plain); s.Cursor < mcpserver.LargestPage-400 {
		t.Errorf("only %d bytes of text", s.Cursor)
	}
	if s := readPage(t, mcpserver.Page{Max: mcpserver.LargestPage, Exact: true}, plain); s.Cursor < (mcpserver.LargestPage-400)/4*3 {
		t.Errorf("only %d bytes as base64", s.Cursor)
	}
	if s := readPage(t, mcpserver.Page{Max: 500}, plain); s.Cursor != 500 {
		t.Errorf("%d bytes, asked for 500", s.Cursor)
	}
}

func TestChunkEdges(t *testing.T) {
	tests := []struct {
		name string
		page mcpserver.Page
		out  output
		want shown
	}{
		{"nothing yet", mcpserver.Page{Max: 10}, output{}, shown{Chunk: ""}},
		{"end of nothing", mcpserver.Page{Max: 10}, output{eof: true}, shown{EOF: true}},
		{"character cut by the process", mcpserver.Page{Max: 10}, output{data: []byte("a\xe6\xbc")}, shown{Chunk: "a", Cursor: 1}},
		{"only a beginning", mcpserver.Page{Max: 10}, output{data: []byte("\xe6\xbc")}, shown{}},
		{"a beginning at the end", mcpserver.Page{Max: 10}, output{data: []byte("\xe6\xbc"), eof: true}, shown{Chunk: "\uFFFD\uFFFD", Cursor: 2, EOF: true}},
		{"can never complete", mcpserver.Page{Max: 10}, output{data: []byte("\xe6(")}, shown{Chunk: "\uFFFD(", Cursor: 2}},
		{"character larger than the page", mcpserver.Page{Max: 1}, output{data: []byte("😀a")}, shown{Chunk: "😀", Cursor: 4}},
		{"end not reached", mcpserver.Page{Max: 1}, output{data: []byte("ab"), eof: true}, shown{Chunk: "a", Cursor: 1}},
		{"lost", mcpserver.Page{Max: 10, Cursor: 1}, output{data: []byte("abcdef"), lost: 4, eof: true}, shown{Chunk: "ef", Cursor: 6, EOF: true, Lost: 3, RetainedFrom: 4}},
		{"beginning as base64", mcpserver.Page{Max: 10, Exact: true}, output{data: []byte("\xe6\xbc")}, shown{Chunk: "5rw=", Cursor: 2}},
	}
	for _, tt := range tests {
		tt.want.State, tt.want.Encoding = "running", "utf-8"
		if tt.page.Exact {
			tt.want.Encoding = "base64"
		}
		if got := readPage(t, tt.page, tt.out); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// growing is a process that writes more at a time of its own.
type growing struct {
	output
	start time.Time
	at    time.Duration
	more  string
	reads int
}

func (g *growing) read(ctx context.Context, r runner.ReadRequest) (runner.ReadResult, error) {
	g.reads++
	limit, grow := time.NewTimer(r.Wait), time.NewTimer(time.Until(g.start.Add(g.at)))
	defer limit.Stop()
	defer grow.Stop()
	for {
		if got, _ := g.output.read(ctx, r); len(got.Chunk) > 0 || got.EOF {
			return got, nil
		}
		select {
		case <-ctx.Done():
			return runner.ReadResult{}, ctx.Err()
		case <-limit.C:
			return g.output.read(ctx, r)
		case <-grow.C:
			g.data = append(g.data, g.more...)
		}
	}
}

func TestUnfinishedCharacterIsWaitedFor(t *testing.T) {
	tests := []struct {
		name string
		wait time.Duration
		at   time.Duration
		more string
		want shown
		took time.Duration
	}{
		{"completed", 10 * time.Second, 3 * time.Second, "\xa2b", shown{Chunk: "漢b", Cursor: 4}, 3 * time.Second},
		{"never", 10 * time.Second, time.Hour, "", shown{}, 10 * time.Second},
		{"broken", 10 * time.Second, 4 * time.Second, "x", shown{Chunk: "\uFFFD\uFFFDx", Cursor: 3}, 4 * time.Second},
		{"no wait", 0, time.Hour, "", shown{}, 0},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			g := &growing{output: output{data: []byte("\xe6\xbc")}, start: time.Now(), at: tt.at, more: tt.more}
			a, err := mcpserver.Page{Max: 100, Wait: tt.wait}.Read(t.Context(), g.read)
			var got shown
			if err != nil || json.Unmarshal(a.Structured, &got) != nil {
				t.Fatal(err)
			}
			tt.want.State, tt.want.Encoding = "running", "utf-8"
			if got != tt.want || time.Since(g.start) != tt.took || g.reads > 3 {
				t.Errorf("%s: got %+v after %v and %d reads", tt.name, got, time.Since(g.start), g.reads)
			}
		})
	}
}

func TestEveryCharacterCostsWhatItTakes(t *testing.T) {
	for r := range rune(utf8.MaxRune + 1) {
		if !utf8.ValidRune(r) {
			continue
		}
		encoded, err := json.Marshal(string(r))
		if want := len(encoded) - len(`""`); err != nil || mcpserver.JSONCost(r) != want {
			t.Fatalf("%U costs %d, want %d", r, mcpserver.JSONCost(r), want)
		}
	}
}
