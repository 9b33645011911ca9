package v4a

import (
	"bytes"
	"fmt"
	"slices"
)

const (
	beginMarker  = "*** Begin Patch"
	endMarker    = "*** End Patch"
	addMarker    = "*** Add File:"
	deleteMarker = "*** Delete File:"
	updateMarker = "*** Update File:"
	moveMarker   = "*** Move to:"
	eofMarker    = "*** End of File"
	placeMarker  = "*** Environment ID:"
	anchorMarker = "@@"
)

const headers = `"*** Add File: PATH", "*** Delete File: PATH", "*** Update File: PATH" or "*** End Patch"`

// Parse reads a patch. It takes at most MaxPatchBytes and keeps no copy of them.
// Every error is an *Error.
func Parse(text []byte) (Patch, error) {
	if len(text) > MaxPatchBytes {
		return Patch{}, tooMuch(1, fmt.Sprintf("the patch has %d bytes", len(text)), MaxPatchBytes)
	}
	p := parser{line: 1 + bytes.Count(text[:len(text)-len(bytes.TrimLeftFunc(text, space))], newline)}
	body, err := p.unwrap(bytes.TrimSpace(text))
	if err != nil {
		return Patch{}, err
	}
	count := bytes.Count(body, newline) + 1
	if count > MaxPatchLines {
		return Patch{}, tooMuch(p.line, fmt.Sprintf("the patch has %d lines", count), MaxPatchLines)
	}
	// All lines are kept in one array, made once, so that hunks can hold parts of it.
	p.kept = make([][]byte, 0, count)
	if err := p.parse(body); err != nil {
		return Patch{}, err
	}
	if err := apart(p.hunks); err != nil {
		return Patch{}, err
	}
	return Patch{Hunks: p.hunks}, nil
}

var newline = []byte{'\n'}

// unwrap takes off a heredoc around the patch, which some models send along.
func (p *parser) unwrap(text []byte) ([]byte, *Error) {
	first, rest := cut(text)
	if !slices.Contains([]string{"<<EOF", "<<'EOF'", `<<"EOF"`}, string(first[:min(len(first), 8)])) {
		return text, nil
	}
	end := bytes.LastIndexByte(rest, '\n')
	if string(rest[end+1:]) != "EOF" {
		return nil, invalid(p.line+bytes.Count(text, newline), "the heredoc is not closed", `a last line "EOF"`, "close it, or send the patch without a heredoc")
	}
	p.line++
	return bytes.TrimRightFunc(rest[:max(end, 0)], space), nil
}

// cut takes the first line off a text; a CR before the LF is no part of it.
func cut(text []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(text, newline)
	return bytes.TrimSuffix(line, []byte{'\r'}), rest
}

// parse reads lines from the first marker to the last.
func (p *parser) parse(body []byte) *Error {
	first, rest := cut(body)
	if string(bytes.TrimSpace(first)) != beginMarker {
		return invalid(p.line, "the patch begins with "+quote(first), quote(beginMarker), "put this marker on a line of its own before everything else")
	}
	for len(rest) > 0 && !p.ended {
		var line []byte
		line, rest = cut(rest)
		p.line++
		if err := p.one(line, len(rest) == 0); err != nil {
			return err
		}
	}
	switch {
	case !p.ended:
		return invalid(p.line, "the patch ends without its end marker", quote(endMarker), "put this marker on a last line of its own, and look whether the patch was cut off")
	case len(rest) > 0:
		return p.after(rest)
	case len(p.hunks) == 0:
		return invalid(p.line, "the patch changes nothing", headers[:len(headers)-len(` or "*** End Patch"`)], "name at least one file")
	}
	return nil
}

// one takes a line; the end marker as the last line counts even where it is
// indented, because the whole patch may be.
func (p *parser) one(line []byte, last bool) *Error {
	if trimmed := bytes.TrimSpace(line); last && string(trimmed) == endMarker {
		_, err := p.header(trimmed)
		return err
	}
	return p.take(line)
}

// after wants nothing but blank lines behind the end marker.
func (p *parser) after(rest []byte) *Error {
	blank := rest[:len(rest)-len(bytes.TrimLeftFunc(rest, space))]
	line, _ := cut(rest[bytes.LastIndexByte(blank, '\n')+1:])
	return invalid(p.line+1+bytes.Count(blank, newline), "the patch goes on with "+quote(line)+" behind its end marker", "nothing",
		"put everything between one begin and one end marker")
}

func tooMuch(line int, what string, limit int) *Error {
	return invalid(line, what, fmt.Sprintf("at most %d", limit), "split it into several patches")
}
