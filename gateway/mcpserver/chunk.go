package mcpserver

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"codespace/runner"
)

// shown is a chunk of output as it is answered.
type shown struct {
	State        runner.State `json:"state"`
	Cursor       int64        `json:"cursor"`
	EOF          bool         `json:"eof"`
	Lost         int64        `json:"output_lost"`
	RetainedFrom int64        `json:"retained_from"`
	Encoding     string       `json:"encoding"`
	Chunk        string       `json:"chunk"`
}

// show renders as much of got as the page's byte cap takes: at least one byte,
// and as text at least one character, wherever there is one to show.
func (p *page) show(got runner.ReadResult) reply {
	limit := max(p.max, smallestCap)
	room := limit - p.overhead(got)
	start := got.Cursor - int64(len(got.Chunk))
	chunk, used, encoding := "", 0, "utf-8"
	if p.exact {
		encoding = "base64"
		used = min(len(got.Chunk), p.max, room/4*3)
		chunk = base64.StdEncoding.EncodeToString(got.Chunk[:used])
	} else {
		chunk, used = readable(got.Chunk, fit{bytes: p.max, room: room, last: got.EOF})
	}
	return p.reply(start, shown{
		State:        got.State,
		Cursor:       start + int64(used),
		EOF:          got.EOF && used == len(got.Chunk),
		Lost:         got.Lost,
		RetainedFrom: got.RetainedFrom,
		Encoding:     encoding,
		Chunk:        chunk,
	})
}

// overhead is the most bytes anything but the chunk can take.
func (p *page) overhead(got runner.ReadResult) int {
	out, err := p.reply(got.Cursor, shown{
		State:        got.State,
		Cursor:       got.Cursor,
		Lost:         got.Lost,
		RetainedFrom: got.RetainedFrom,
		Encoding:     "base64",
	}).render()
	if err != nil {
		return 0 // numbers and words: cannot fail
	}
	return out.size()
}

func (p *page) reply(start int64, s shown) reply {
	more := "more may follow"
	if s.EOF {
		more = "end of output"
	}
	return reply{
		header: fmt.Sprintf("process %s %s; output bytes %d-%d as %s; next cursor %d, %s; %d bytes lost before these, kept from %d",
			clip(p.process, 64), s.State, start, s.Cursor, s.Encoding, s.Cursor, more, s.Lost, s.RetainedFrom),
		value: s,
		body:  s.Chunk,
		raw:   true,
	}
}

// fit says what a text may take.
type fit struct {
	bytes int  // of output; the first character may take more
	room  int  // of JSON
	last  bool // nothing follows: an unfinished character at the end is shown as it is
}

// readable shows output as text: whole characters, U+FFFD for each byte that is
// not one. An unfinished character at the end is left for the next read.
func readable(chunk []byte, f fit) (text string, used int) {
	var out strings.Builder
	for used < len(chunk) {
		rest := chunk[used:]
		if !f.last && !utf8.FullRune(rest) {
			break
		}
		r, n := utf8.DecodeRune(rest)
		cost := jsonCost(r)
		if out.Len() > 0 && used+n > f.bytes || cost > f.room {
			break
		}
		out.WriteRune(r)
		used += n
		f.room -= cost
	}
	return out.String(), used
}

// jsonCost is how many bytes encoding/json writes for r, escaping for HTML.
func jsonCost(r rune) int {
	switch r {
	case '"', '\\', '\b', '\f', '\n', '\r', '\t':
		return 2
	case '<', '>', '&', '\u2028', '\u2029':
		return 6
	}
	if r < ' ' {
		return 6
	}
	return utf8.RuneLen(r)
}
