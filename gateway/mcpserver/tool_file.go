package mcpserver

import (
	"context"
	"encoding/base64"
	"fmt"

	"codespace/runner"
	"codespace/runner/files"
)

func readFile() tool {
	return tool{
		name:  "read",
		title: "Read a file",
		description: "Read a part of a regular file of a workspace: bytes (offset, length) or lines (start_line, line_count). The version is that " +
			"of the whole file which the part was read from, to be given to a later change. Links are not followed.",
		hints:  hints{readOnly: true, idempotent: true},
		input:  fileInput,
		output: fileOutput,
		run:    runReadFile,
	}
}

const fileInput = `{"type":"object","additionalProperties":false,"required":["workspace_id","path"],"properties":{
"workspace_id":{"type":"string"},
"path":{"type":"string","minLength":1,"description":"Relative to the workspace, with / between names; no . or .."},
"offset":{"type":"integer","minimum":0,"description":"First byte; default 0."},
"length":{"type":"integer","minimum":1,"maximum":65536,"description":"Most bytes; default 10000."},
"start_line":{"type":"integer","minimum":1,"description":"First line, instead of offset and length."},
"line_count":{"type":"integer","minimum":1,"description":"Most lines; default: what fits 10000 bytes."},
"encoding":{"type":"string","enum":["utf-8","base64"],"description":"utf-8 (default) shows bytes that are not text as U+FFFD; base64 is exact."}}}`

const fileOutput = `{"type":"object","properties":{
"path":{"type":"string"},
"version":{"type":"string","description":"sha256: and hex of the whole file."},
"size":{"type":"integer","description":"Bytes of the whole file."},
"range":{"type":"object","description":"offset and length in bytes of the content and, if lines were asked for, the number of its first line."},
"truncated":{"type":"boolean","description":"More was asked for, and is there."},
"next_offset":{"type":"integer","description":"Where to read on; present unless the content reaches the end of the file."},
"encoding":{"type":"string"},
"content":{"type":"string"}}}`

type fileShown struct {
	Path      string    `json:"path"`
	Version   string    `json:"version"`
	Size      int64     `json:"size"`
	Range     fileRange `json:"range"`
	Truncated bool      `json:"truncated"`
	Next      *int64    `json:"next_offset,omitempty"`
	Encoding  string    `json:"encoding"`
	Content   string    `json:"content"`
}

type fileRange struct {
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
	Line   int64 `json:"line,omitempty"`
}

// part is what was asked of one file.
type part struct {
	path  string
	max   int  // bytes of the whole result
	exact bool // base64 instead of text
}

func runReadFile(ctx context.Context, c *call) (reply, error) {
	a := c.arguments
	lines, bytes := a.has("start_line") || a.has("line_count"), a.has("offset") || a.has("length")
	if lines && bytes {
		return reply{}, &runner.Fault{Code: runner.InvalidArgument, Message: "bytes and lines cannot both be asked for",
			Next: "give offset and length, or start_line and line_count"}
	}
	p := part{path: a.text("path"), max: max(int(a.integer("length", defaultPage)), smallestCap), exact: a.text("encoding") == "base64"}
	req := files.ReadRequest{Workspace: a.text("workspace_id"), Path: p.path, Offset: a.integer("offset", 0), Length: a.integer("length", 0),
		LineCount: a.integer("line_count", 0), MaxBytes: int64(p.max), Text: !p.exact}
	if lines {
		req.StartLine = a.integer("start_line", 1)
	}
	got, err := c.gateway.ReadFile(ctx, c.principal, req)
	if err != nil {
		return reply{}, err
	}
	return p.show(got), nil
}

// show renders as much of got as the result may hold.
func (p part) show(got files.ReadResult) reply {
	room := p.max - p.overhead(got)
	content, used, encoding := "", 0, "utf-8"
	if p.exact {
		encoding = "base64"
		used = min(len(got.Content), room/4*3)
		content = base64.StdEncoding.EncodeToString(got.Content[:used])
	} else {
		content, used = readable(got.Content, fit{bytes: len(got.Content), room: room, last: true})
	}
	s := p.shown(got, used)
	s.Encoding, s.Content = encoding, content
	return p.reply(s)
}

// shown is all but the content.
func (p part) shown(got files.ReadResult, used int) fileShown {
	s := fileShown{
		Path: p.path, Version: got.Version, Size: got.Size, Range: fileRange{got.Offset, int64(used), got.Line},
		Truncated: got.Truncated || used < len(got.Content), Encoding: "base64",
	}
	if next := got.Offset + int64(used); next < got.Size {
		s.Next = &next
	}
	return s
}

// overhead is the most bytes anything but the content can take.
func (p part) overhead(got files.ReadResult) int {
	got.Truncated = true
	out, err := p.reply(p.shown(got, 0)).render()
	if err != nil {
		return 0 // numbers and words: cannot fail
	}
	return out.size() + 4*len("67108864") // the numbers of a longer range, in either form
}

func (p part) reply(s fileShown) reply {
	more := "to the end of the file"
	if s.Next != nil {
		more = fmt.Sprintf("more at offset %d", *s.Next)
	}
	if s.Range.Line > 0 {
		more += fmt.Sprintf(", from line %d on", s.Range.Line)
	}
	return reply{
		header: fmt.Sprintf("%s %s of %d bytes; bytes %d-%d as %s, %s", quoted(s.Path), s.Version, s.Size, s.Range.Offset,
			s.Range.Offset+s.Range.Length, s.Encoding, more),
		value: s,
		body:  s.Content,
		raw:   true,
	}
}
