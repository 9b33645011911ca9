package openat2fs

import (
	"bytes"
	"unicode/utf8"
)

// collector keeps the asked part of a file whose bytes pass by, and a little more
// than a page, so that it is known what follows.
type collector struct {
	asked   Range
	passed  int64 // bytes that went by
	line    int64 // of the next byte, as far as lines are counted
	begun   bool
	start   int64 // offset of kept
	kept    []byte
	more    bool // the file, or the asked lines, go on behind kept
	lines   int64
	reached bool // the last asked line has ended
}

func (c *collector) take(chunk []byte) {
	if c.asked.StartLine > 0 {
		c.takeLines(chunk)
	} else {
		c.takeBytes(chunk)
	}
	c.passed += int64(len(chunk))
}

func (c *collector) takeBytes(chunk []byte) {
	behind := c.passed + int64(len(chunk))
	if behind < c.asked.Offset {
		return
	}
	c.begun, c.start = true, c.asked.Offset
	c.keep(chunk[max(c.asked.Offset-c.passed, 0):])
}

func (c *collector) takeLines(chunk []byte) {
	at := c.passed
	for c.line < c.asked.StartLine {
		i := bytes.IndexByte(chunk, '\n')
		if i < 0 {
			return
		}
		chunk, at, c.line = chunk[i+1:], at+int64(i)+1, c.line+1
	}
	if !c.begun {
		c.begun, c.start = true, at
	}
	if c.asked.LineCount == 0 {
		c.keep(chunk)
		return
	}
	for len(chunk) > 0 && !c.reached && !c.full() {
		end := bytes.IndexByte(chunk, '\n') + 1
		if end > 0 {
			c.lines++
			c.reached = c.lines == c.asked.LineCount
		} else {
			end = len(chunk)
		}
		c.keep(chunk[:end])
		chunk = chunk[end:]
	}
	c.more = c.more || len(chunk) > 0 && !c.reached
}

// most is how many bytes a page has if the end of no character is in the way.
func (c *collector) most() int64 {
	if c.asked.Length > 0 {
		return min(c.asked.Max, c.asked.Length)
	}
	return c.asked.Max
}

// room is a page and the rest of a character.
func (c *collector) room() int64 { return c.most() + utf8.UTFMax - 1 }

func (c *collector) full() bool { return int64(len(c.kept)) >= c.room() }

func (c *collector) keep(wanted []byte) {
	left := c.room() - int64(len(c.kept))
	if int64(len(wanted)) > left {
		wanted, c.more = wanted[:left], true
	}
	c.kept = append(c.kept, wanted...)
}

// page is what was kept, cut to what was asked; false if the file ended before.
func (c *collector) page() (Page, bool) {
	if !c.begun {
		return Page{}, false
	}
	kept := int64(len(c.kept))
	cut := c.cut(min(c.most(), kept))
	p := Page{Content: c.kept[:cut], Offset: c.start, Next: c.start + cut}
	if c.asked.StartLine > 0 {
		p.Line = c.asked.StartLine
	}
	if length := c.asked.Length; length > 0 {
		p.Truncated = cut < min(kept, length) || c.more && cut < length
	} else {
		p.Truncated = cut < kept || c.more
	}
	return p, true
}

// cut is where a page of at most want bytes ends. Behind the last kept byte
// nothing follows that belongs to a character: it is the end of the file, or of a
// line, or far enough away.
func (c *collector) cut(want int64) int64 {
	if !c.asked.Text || want == int64(len(c.kept)) || want == 0 {
		return want
	}
	for back := int64(1); back < utf8.UTFMax && back <= want; back++ {
		tail := c.kept[want-back : want]
		if !utf8.RuneStart(tail[0]) {
			continue
		}
		if utf8.FullRune(tail) {
			return want
		}
		if want > back {
			return want - back
		}
		_, size := utf8.DecodeRune(c.kept)
		return int64(size)
	}
	return want
}
