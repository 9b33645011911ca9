package v4a

import (
	"fmt"
	"strconv"
)

// locator finds where the chunks of one file go, in their order.
type locator struct {
	steps    *steps
	f        *file
	hunk     *Hunk
	wanted   []wanted
	patterns [][][]byte
	indexes  [passes]*index // made when a pass is first needed
	cursor   int            // line of the file where the search goes on
	edits    []edit
	atEnd    []edit // behind the last line, wherever the cursor is
}

// wanted is a chunk as patterns, each a number; none stands for none.
type wanted struct {
	anchors []int
	old     int
	shorter int // old without its empty last line, if others are left
}

const none = -1

// locate is the edits of a hunk, in the order of the file.
func locate(s *steps, f *file, hunk *Hunk) ([]edit, *Error) {
	l := &locator{steps: s, f: f, hunk: hunk}
	for i := range hunk.chunks {
		l.wanted = append(l.wanted, l.want(&hunk.chunks[i]))
	}
	for i := range hunk.chunks {
		if err := l.narrow(i); err != nil {
			return nil, err
		}
		if err := l.chunk(i); err != nil {
			return nil, err
		}
	}
	return append(l.edits, l.atEnd...), nil
}

func (l *locator) want(c *chunk) wanted {
	w := wanted{old: none, shorter: none}
	for _, anchor := range c.anchors {
		w.anchors = append(w.anchors, l.pattern([][]byte{anchor}))
	}
	old := c.old()
	if len(old) == 0 {
		return w
	}
	w.old = l.pattern(old)
	if last := len(old) - 1; last > 0 && len(old[last]) == 0 {
		w.shorter = l.pattern(old[:last])
	}
	return w
}

func (l *locator) pattern(lines [][]byte) int {
	l.patterns = append(l.patterns, lines)
	return len(l.patterns) - 1
}

// index is where patterns are in a pass, from the cursor on.
func (l *locator) index(p pass) *index {
	if l.indexes[p] == nil {
		l.indexes[p] = newIndex(l.steps, p, l.f, l.patterns)
	}
	l.indexes[p].leave(l.cursor)
	return l.indexes[p]
}

// narrow moves the cursor behind the anchors of a chunk.
func (l *locator) narrow(chunk int) *Error {
	for i, anchor := range l.wanted[chunk].anchors {
		first, _, _ := l.find(anchor)
		if first == nowhere {
			return l.noAnchor(chunk, i)
		}
		l.cursor = first + 1
	}
	return nil
}

// find is the first and the second place of a pattern in the strictest pass that
// has one.
func (l *locator) find(pattern int) (first, second int, p pass) {
	for p := range passes {
		if first, second := l.index(p).find(pattern); first != nowhere {
			return first, second, p
		}
	}
	return nowhere, nowhere, passes
}

// chunk finds the old lines of a chunk and moves the cursor behind them.
func (l *locator) chunk(i int) *Error {
	c, w := &l.hunk.chunks[i], l.wanted[i]
	if w.old == none {
		l.insert(c, c.lines)
		return nil
	}
	if done, err := l.edit(i, w.old, c.lines); done || err != nil {
		return err
	}
	switch old := l.patterns[w.old]; {
	case len(old[len(old)-1]) > 0:
	case w.shorter == none:
		l.insert(c, shorten(c.lines))
		return nil
	default:
		if done, err := l.edit(i, w.shorter, shorten(c.lines)); done || err != nil {
			return err
		}
	}
	return l.notFound(i)
}

// insert places a chunk without old lines: behind its anchor, or at the end of
// the file. Then the cursor stays, for a later chunk may be about any line before.
func (l *locator) insert(c *chunk, lines [][]byte) {
	if c.endOfFile || len(c.anchors) == 0 {
		l.atEnd = append(l.atEnd, edit{l.f.count(), lines})
		return
	}
	l.edits = append(l.edits, edit{l.cursor, lines})
}

// edit places a chunk where its old lines are; false is nowhere.
func (l *locator) edit(chunk, pattern int, lines [][]byte) (bool, *Error) {
	at, err := l.only(chunk, pattern)
	if at == nowhere || err != nil {
		return false, err
	}
	l.edits = append(l.edits, edit{at, lines})
	l.cursor = at + len(l.patterns[pattern])
	return true, nil
}

// only is the one place that a pattern of a chunk may mean; nowhere if it has none.
func (l *locator) only(chunk, pattern int) (int, *Error) {
	c := &l.hunk.chunks[chunk]
	if c.endOfFile {
		return l.last(pattern), nil
	}
	first, second, p := l.find(pattern)
	if second != nowhere && len(c.anchors) == 0 {
		return nowhere, l.ambiguous(chunk, l.index(p).all(pattern))
	}
	return first, nil
}

// last is the place of a pattern that ends with the file.
func (l *locator) last(pattern int) int {
	at := l.f.count() - len(l.patterns[pattern])
	if at < l.cursor {
		return nowhere
	}
	for p := range passes {
		if l.index(p).at(pattern, at) {
			return at
		}
	}
	return nowhere
}

// shorten is the lines of a chunk without its last old line, which is empty. It
// stood for the end of the file: a new empty line at the end of the chunk, which
// stands for the same, goes too, and one with new lines behind it is new itself.
func shorten(lines [][]byte) [][]byte {
	last := len(lines) - 1
	for added(lines[last]) {
		last--
	}
	shorter := append([][]byte(nil), lines[:last]...)
	behind := lines[last+1:]
	if len(behind) == 0 {
		return shorter
	}
	if !removed(lines[last]) {
		shorter = append(shorter, []byte{'+'})
	}
	if len(content(behind[len(behind)-1])) == 0 {
		behind = behind[:len(behind)-1]
	}
	return append(shorter, behind...)
}

func (l *locator) ambiguous(chunk int, places []int) *Error {
	e := l.fault(chunk, Ambiguous)
	e.Total = len(places)
	var numbers []string
	for _, at := range places[:min(len(places), shownMatches)] {
		e.Matches = append(e.Matches, at+1)
		numbers = append(numbers, strconv.Itoa(at+1))
	}
	e.What = fmt.Sprintf("chunk %d of %s fits at %d places: lines %s", e.Chunk, quote(e.Path), e.Total, listed(numbers, e.Total))
	e.Expected = "one place"
	e.Next = `give it more lines of context, or an anchor: "@@", a blank and a line of the file above it`
	return e
}

// fault is an error about a chunk.
func (l *locator) fault(chunk int, code Code) *Error {
	return &Error{Code: code, Line: l.hunk.chunks[chunk].line, Path: l.hunk.Path, Chunk: chunk + 1}
}
