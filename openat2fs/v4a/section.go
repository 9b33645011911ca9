package v4a

import (
	"bytes"
	"fmt"
	"unicode"
)

// parser holds the patch that has been read so far.
type parser struct {
	line   int // of what is read, from 1
	hunks  []Hunk
	kept   [][]byte // anchors and lines; never grows beyond its capacity
	open   *chunk   // of the last hunk, if it has one that can go on
	chunks int
	paths  int
	ended  bool
}

func space(r rune) bool { return unicode.IsSpace(r) }

// take reads one line between the markers.
func (p *parser) take(line []byte) *Error {
	h := p.hunk()
	if h != nil && (h.Kind == Update || h.Kind == Move) {
		return p.updateLine(h, line)
	}
	trimmed := bytes.TrimSpace(line)
	known, err := p.header(trimmed)
	switch {
	case known || err != nil:
		return err
	case h == nil || h.Kind == Delete:
		return invalid(p.line, "found "+quote(line), headers, "begin every file with its header; a line of a file needs one before it")
	case !added(line):
		return invalid(p.line, "found "+quote(line)+" in the new file "+quote(h.Path), `a line that begins with "+", or `+headers,
			`write "+" before every line of a new file, empty ones too`)
	}
	h.lines = p.keep(h.lines, content(line))
	return nil
}

// hunk is the one being read, nil before the first.
func (p *parser) hunk() *Hunk {
	if len(p.hunks) == 0 {
		return nil
	}
	return &p.hunks[len(p.hunks)-1]
}

// keep adds a line to the end of list, which is the last part of all lines.
func (p *parser) keep(list [][]byte, line []byte) [][]byte {
	p.kept = append(p.kept, line)
	return p.kept[len(p.kept)-len(list)-1:]
}

// fileMarkers begin a hunk of their kind.
var fileMarkers = []struct {
	text string
	kind Kind
}{{addMarker, Add}, {deleteMarker, Delete}, {updateMarker, Update}}

// header reads a line that ends the hunk before it; false is any other line.
func (p *parser) header(trimmed []byte) (bool, *Error) {
	if bytes.HasPrefix(trimmed, []byte(placeMarker)) {
		return true, invalid(p.line, "found "+quote(trimmed), headers, "remove the line: it can select nothing, the workspace of the call is meant")
	}
	if string(trimmed) == endMarker {
		p.ended = true
		return true, p.finish()
	}
	for _, marker := range fileMarkers {
		name, ok := named(trimmed, marker.text)
		if !ok {
			continue
		}
		if err := p.finish(); err != nil {
			return true, err
		}
		path, err := p.path(name)
		if err == nil {
			p.hunks = append(p.hunks, Hunk{Kind: marker.kind, Path: path, Line: p.line})
		}
		return true, err
	}
	return false, nil
}

// named is the path behind a marker. The blank between them is the marker's, and
// it is gone from the end of a line where the path is empty.
func named(line []byte, marker string) (string, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	switch {
	case !ok:
		return "", false
	case len(rest) == 0:
		return "", true
	}
	return string(bytes.TrimRightFunc(rest[1:], space)), rest[0] == ' '
}

// updateLine reads a line below an update header. Only its right end is trimmed
// before it is compared with markers: an indented one is context.
func (p *parser) updateLine(h *Hunk, line []byte) *Error {
	trimmed := bytes.TrimRightFunc(line, space)
	if known, err := p.header(trimmed); known || err != nil {
		return err
	}
	if name, ok := named(trimmed, moveMarker); ok {
		return p.moveTo(h, name)
	}
	switch {
	case bytes.HasPrefix(trimmed, []byte(anchorMarker)):
		return p.anchor(h, trimmed[len(anchorMarker):])
	case string(trimmed) == eofMarker:
		return p.endOfFile()
	case p.open == nil && len(h.chunks) > 0 && len(trimmed) == 0:
		return nil // only an End of File closes a chunk: blank lines may follow it
	case len(line) > 0 && line[0] != ' ' && line[0] != '+' && line[0] != '-':
		return invalid(p.line, "found "+quote(line)+" in the update of "+quote(h.Path), `a line that begins with " ", "+", "-" or "@@", or `+headers,
			"give every line its sign: a blank for context, + for a new line, - for one to remove")
	case p.open == nil && len(h.chunks) > 0:
		return invalid(p.line, "found "+quote(line)+" behind "+quote(eofMarker), `"@@", or `+headers, `begin another chunk with "@@"`)
	case p.open == nil:
		if err := p.begin(h); err != nil {
			return err
		}
	}
	p.open.lines = p.keep(p.open.lines, line)
	return nil
}

func (p *parser) moveTo(h *Hunk, name string) *Error {
	if p.line != h.Line+1 {
		return invalid(p.line, "found "+quote(moveMarker)+" too late", "it on the line behind the update header", "move it there; a file moves once")
	}
	path, err := p.path(name)
	h.Kind, h.MoveTo = Move, path
	return err
}

// anchor begins a chunk, or narrows the one that has nothing but anchors so far.
func (p *parser) anchor(h *Hunk, text []byte) *Error {
	if len(text) > 0 && text[0] != ' ' {
		return invalid(p.line, "found "+quote(anchorMarker+string(text[:min(len(text), shownBytes)])), `"@@" alone, or "@@", a blank and a line of the file`,
			"put a blank behind @@")
	}
	if p.open != nil && len(p.open.lines) > 0 {
		p.close(h)
	}
	if p.open == nil {
		if err := p.begin(h); err != nil {
			return err
		}
	}
	if len(text) > 0 {
		p.open.anchors = p.keep(p.open.anchors, text[1:])
	}
	return nil
}

// begin makes a chunk that the next lines belong to.
func (p *parser) begin(h *Hunk) *Error {
	if p.chunks++; p.chunks > MaxChunks {
		return tooMuch(p.line, "the patch has too many chunks", MaxChunks)
	}
	h.chunks = append(h.chunks, chunk{line: p.line})
	p.open = &h.chunks[len(h.chunks)-1]
	return nil
}

// close ends a chunk. Bare empty lines between a header and the first chunk are
// no chunk of their own: they separate, and name nothing to look for.
func (p *parser) close(h *Hunk) {
	c := p.open
	p.open = nil
	if len(h.chunks) > 1 || len(c.anchors) > 0 {
		return
	}
	for _, line := range c.lines {
		if len(line) > 0 {
			return
		}
	}
	h.chunks = nil
}

func (p *parser) endOfFile() *Error {
	if p.open == nil || len(p.open.lines) == 0 {
		return invalid(p.line, "found "+quote(eofMarker)+" without lines before it", "a chunk that it ends", "write it once, behind the lines of the chunk")
	}
	p.open.endOfFile = true
	p.open = nil
	return nil
}

// finish ends the hunk that is being read.
func (p *parser) finish() *Error {
	h := p.hunk()
	if p.open != nil && len(p.open.lines) == 0 {
		return invalid(p.open.line, "the chunk has no lines", "lines of context, to remove or to add behind its anchors", "write them, or remove the chunk")
	}
	if p.open != nil {
		p.close(h)
	}
	if h != nil && h.Kind == Update && len(h.chunks) == 0 {
		return invalid(h.Line, fmt.Sprintf("the update of %s changes nothing", quote(h.Path)), "a chunk or "+quote(moveMarker+" PATH"),
			"write what changes, or remove the header")
	}
	return nil
}
