package v4a

import (
	"bytes"
	"fmt"
)

// noAnchor says that an anchor of a chunk is on no line behind the cursor.
func (l *locator) noAnchor(chunk, anchor int) *Error {
	e := l.fault(chunk, InvalidPatch)
	text := l.hunk.chunks[chunk].anchors[anchor]
	e.Sought = shown([][]byte{text})
	e.What = fmt.Sprintf("chunk %d of %s: its anchor %s is on no line from line %d on", e.Chunk, quote(e.Path), e.Sought[0], l.cursor+1)
	e.Expected = "a whole line of the file behind the chunk before it"
	e.Next = "read the file again and copy a line exactly"
	if bytes.HasPrefix(text, []byte("-")) && bytes.HasSuffix(text, []byte(" @@")) {
		e.Next = `an anchor is text of the file, never line numbers: write "@@" alone`
	}
	at := l.holds(text)
	if at == nowhere {
		at = l.alike([][]byte{text})
	}
	if at != nowhere {
		e.Nearest, e.Differs = at+1, at+1
		e.What += fmt.Sprintf("; line %d is %s", at+1, quote(l.f.line(at)))
	}
	return e
}

// holds is the first line from the cursor on, or else from the top, that has a
// text in it.
func (l *locator) holds(text []byte) int {
	var own, scratch []byte
	text = folded.key(text, &own)
	above := nowhere
	for i := range l.f.count() {
		line := l.f.line(i)
		l.steps.line(line)
		found := len(text) > 0 && bytes.Contains(folded.key(line, &scratch), text)
		if found && i >= l.cursor {
			return i
		}
		if found && above == nowhere {
			above = i
		}
	}
	return above
}

// notFound says that the old lines of a chunk are nowhere, and where they nearly are.
func (l *locator) notFound(chunk int) *Error {
	e := l.fault(chunk, InvalidPatch)
	c := &l.hunk.chunks[chunk]
	old := l.patterns[l.wanted[chunk].old]
	e.Sought = shown(old)
	e.What = fmt.Sprintf("chunk %d of %s is not in the file from line %d on: %s", e.Chunk, quote(e.Path), l.cursor+1, listed(e.Sought, len(old)))
	e.Expected = "its context and removed lines, one behind the other"
	e.Next = "read the file again and copy the lines exactly"
	if c.endOfFile {
		e.Expected = "its context and removed lines as the last of the file"
	}
	at := max(0, l.f.count()-len(old))
	if !c.endOfFile {
		at = l.nearest(old)
	}
	if at == nowhere || l.f.count() == 0 {
		e.What += fmt.Sprintf("; nothing in its %d lines is like them", l.f.count())
		return e
	}
	l.compare(e, at, old)
	return e
}

// compare adds to an error how the file at a line differs from what was sought.
func (l *locator) compare(e *Error, at int, old [][]byte) {
	e.Nearest = at + 1
	var own, scratch []byte
	for j, line := range old {
		if at+j == l.f.count() {
			e.Differs = at + j + 1
			e.What += fmt.Sprintf("; nearest is line %d, but the file ends before %s", e.Nearest, quote(line))
			return
		}
		found := l.f.line(at + j)
		if !bytes.Equal(folded.key(line, &own), folded.key(found, &scratch)) {
			e.Differs = at + j + 1
			e.What += fmt.Sprintf("; nearest is line %d, but line %d is %s and not %s", e.Nearest, e.Differs, quote(found), quote(line))
			return
		}
	}
	e.What += fmt.Sprintf("; it is in line %d, before the search begins", e.Nearest)
	e.Next = "put the chunks in the order of the file, and do not repeat an anchor's line in its chunk"
}

// nearest is the line of the file where most lines of a chunk are where they
// should be, or else its first line that is like the first of the chunk.
func (l *locator) nearest(old [][]byte) int {
	votes := l.votes(old)
	best := nowhere
	for at, count := range votes {
		if count > 0 && (best == nowhere || count > votes[best] || count == votes[best] && best < l.cursor && at >= l.cursor) {
			best = at
		}
	}
	if best == nowhere {
		return l.alike(old)
	}
	return best
}

// votes counts for every line of the file how many lines speak for the chunk
// being there. A line that the chunk has several times speaks for its first.
func (l *locator) votes(old [][]byte) []int32 {
	words := newVocabulary()
	var first []int
	for j, line := range old {
		l.steps.line(line)
		var own []byte
		if word := words.add(folded.key(line, &own)); int(word) == len(first) {
			first = append(first, j)
		}
	}
	votes := make([]int32, l.f.count())
	var scratch []byte
	for i := range votes {
		line := l.f.line(i)
		l.steps.line(line)
		word := words.find(folded.key(line, &scratch))
		if word >= 0 && len(words.keys[word]) > 0 && i >= first[word] {
			votes[i-first[word]]++
		}
	}
	return votes
}

// alike is the line of the file that shares most with the first line of a chunk
// that has text: at least half of it, from both ends.
func (l *locator) alike(old [][]byte) int {
	var text []byte
	ahead := 0
	for j, line := range old {
		if text = bytes.TrimSpace(line); len(text) > 0 {
			ahead = j
			break
		}
	}
	best, most := nowhere, max(1, len(text)/2)
	for i := range l.f.count() {
		line := bytes.TrimSpace(l.f.line(i))
		l.steps.line(line)
		if alike := shared(line, text); alike >= most && i >= ahead && (alike > most || best == nowhere) {
			best, most = i-ahead, alike
		}
	}
	return best
}

// shared counts the bytes that two lines have in common at their ends.
func shared(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	a, b = a[n:], b[n:]
	for i := 1; i <= len(a) && i <= len(b) && a[len(a)-i] == b[len(b)-i]; i++ {
		n++
	}
	return n
}
