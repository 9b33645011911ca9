package openat2fs

import (
	"math/bits"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// What a glob may be at most.
const (
	maxGlobBytes = 1024
	maxSegments  = 255 // over all alternatives, with one more for the end of each
)

// glob is a compiled pattern. It is matched one component at a time while the
// tree is walked: a directory whose set of places in the pattern is empty holds
// no match, and is not opened.
//
// The language is doublestar's, except that a slash is matched by a slash and by
// "**" alone, never by a class, and that a star matches nothing everywhere:
// "a*/**" and "a***" match "a", as "a/**" and "a*" do.
type glob struct {
	segments []segment
	start    places
}

// segment is one component of one alternative.
type segment struct {
	form    form
	text    string // what form compares with, or a pattern of doublestar
	closure places // here, and behind it where it may match nothing
	accepts bool   // the pattern may end before it
}

type form int

const (
	atEnd       form = iota // behind the last component
	anyName                 // *
	anyDepth                // **
	exactly                 // text
	endsWith                // *text
	beginsWith              // text*
	likePattern             // whatever else
)

// places is a set of segments.
type places [4]uint64

func (p *places) add(i int)      { p[i/64] |= 1 << (i % 64) }
func (p *places) join(q *places) { p[0] |= q[0]; p[1] |= q[1]; p[2] |= q[2]; p[3] |= q[3] }
func (p *places) empty() bool    { return p[0]|p[1]|p[2]|p[3] == 0 }

// newGlob compiles; the error is PATH_ESCAPE or INVALID_ARGUMENT, and never
// depends on what is on the disk. "" is "**".
func newGlob(unsafeGlob string) (*glob, error) {
	if unsafeGlob == "" {
		unsafeGlob = "**"
	}
	refuse := func(code Code, reason string) (*glob, error) {
		return nil, &Error{Code: code, Op: "use glob", Path: unsafeGlob, Reason: reason}
	}
	switch {
	case len(unsafeGlob) > maxGlobBytes:
		return refuse(InvalidArgument, "it is longer than 1024 bytes")
	case strings.IndexByte(unsafeGlob, 0) >= 0:
		return refuse(InvalidArgument, "it holds a NUL")
	case unsafeGlob[0] == '/':
		return refuse(PathEscape, "it is absolute")
	case !doublestar.ValidatePattern(unsafeGlob):
		return refuse(InvalidArgument, "it is malformed")
	}
	alternatives, ok := expand(unsafeGlob)
	if !ok {
		return refuse(InvalidArgument, "its braces have too many alternatives, or a class holds a slash")
	}
	g := &glob{}
	for _, alternative := range alternatives {
		if code, reason := g.add(alternative); reason != "" {
			return refuse(code, reason)
		}
	}
	return g, nil
}

// add appends one alternative, which has no braces.
func (g *glob) add(alternative string) (Code, string) {
	first := len(g.segments)
	for text := range strings.SplitSeq(alternative, "/") {
		switch {
		case text == "":
			return InvalidArgument, "a component is empty"
		case text == "." || text == "..":
			return PathEscape, `a component is "` + text + `"`
		case len(g.segments) >= maxSegments:
			return InvalidArgument, "it has more than 255 components"
		}
		g.segments = append(g.segments, newSegment(text))
	}
	if len(g.segments) >= maxSegments+1 {
		return InvalidArgument, "it has more than 255 components"
	}
	g.segments = append(g.segments, segment{form: atEnd, accepts: true})
	for i := len(g.segments) - 1; i >= first; i-- {
		s := &g.segments[i]
		s.closure.add(i)
		if s.form == anyDepth {
			s.closure.join(&g.segments[i+1].closure)
			s.accepts = g.segments[i+1].accepts
		}
	}
	g.start.join(&g.segments[first].closure)
	return "", ""
}

func newSegment(text string) segment {
	const special = `*?[\{`
	if text != "**" {
		text = oneStar(text)
	}
	switch last := len(text) - 1; {
	case text == "**":
		return segment{form: anyDepth}
	case text == "*":
		return segment{form: anyName}
	case !strings.ContainsAny(text, special):
		return segment{form: exactly, text: text}
	case text[0] == '*' && !strings.ContainsAny(text[1:], special):
		return segment{form: endsWith, text: text[1:]}
	case text[last] == '*' && !strings.ContainsAny(text[:last], special):
		return segment{form: beginsWith, text: text[:last]}
	}
	return segment{form: likePattern, text: text}
}

// oneStar writes several stars in a row as one, which they mean: doublestar wants
// a character for each more than two at the end of a name.
func oneStar(text string) string {
	out := make([]byte, 0, len(text))
	star := false
	for i := 0; i < len(text); i++ {
		if star && text[i] == '*' {
			continue
		}
		star = text[i] == '*'
		out = append(out, text[i])
		if text[i] == '\\' && i+1 < len(text) {
			i++
			out = append(out, text[i])
		}
	}
	return string(out)
}

// matches one component. name is not kept.
func (s *segment) matches(name []byte) bool {
	switch s.form {
	case anyName:
		return true
	case exactly:
		return string(name) == s.text
	case endsWith:
		return len(name) >= len(s.text) && string(name[len(name)-len(s.text):]) == s.text
	case beginsWith:
		return len(name) >= len(s.text) && string(name[:len(s.text)]) == s.text
	case likePattern:
		return doublestar.MatchUnvalidated(s.text, string(name))
	}
	return false
}

// file says whether a file of this name matches in a directory at these places.
func (g *glob) file(at *places, name []byte) bool {
	for word, set := range at {
		for ; set != 0; set &= set - 1 {
			i := word*64 + bits.TrailingZeros64(set)
			s := &g.segments[i]
			if s.form == anyDepth && s.accepts || s.form != atEnd && g.segments[i+1].accepts && s.matches(name) {
				return true
			}
		}
	}
	return false
}

// directory is the places in a directory of this name, none if nothing below it
// can match.
func (g *glob) directory(at *places, name []byte) places {
	var below places
	for word, set := range at {
		for ; set != 0; set &= set - 1 {
			i := word*64 + bits.TrailingZeros64(set)
			s := &g.segments[i]
			switch {
			case s.form == anyDepth:
				below.join(&s.closure)
			case s.form != atEnd && g.segments[i+1].form != atEnd && s.matches(name):
				below.join(&g.segments[i+1].closure)
			}
		}
	}
	return below
}
