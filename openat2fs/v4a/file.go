package v4a

import "bytes"

var byteOrderMark = []byte("\xef\xbb\xbf")

// file is a file's bytes as lines. A line ends in LF or CRLF; where a file has no
// LF at all, in CR. A byte order mark at the beginning is part of no line.
type file struct {
	mark   []byte
	text   []byte
	end    byte     // '\n' or '\r'
	starts []uint32 // of every line, and the end of the text
}

// lines splits a file of at most MaxFileBytes; false is one of more than
// MaxFileLines.
func lines(before []byte) (*file, bool) {
	f := &file{text: before, end: '\n'}
	if bytes.HasPrefix(before, byteOrderMark) {
		f.mark, f.text = before[:len(byteOrderMark)], before[len(byteOrderMark):]
	}
	count := bytes.Count(f.text, newline)
	if count == 0 {
		f.end = '\r'
		count = bytes.Count(f.text, []byte{f.end})
	}
	if count > MaxFileLines {
		return nil, false
	}
	f.starts = make([]uint32, 1, count+2)
	for at := 0; at < len(f.text); {
		length := bytes.IndexByte(f.text[at:], f.end) + 1
		if length == 0 {
			length = len(f.text) - at
		}
		at += length
		f.starts = append(f.starts, uint32(at))
	}
	return f, true
}

func (f *file) count() int { return len(f.starts) - 1 }

// split is line i without its ending, and its ending: none at most for the last.
func (f *file) split(i int) (line, ending []byte) {
	whole := f.text[f.starts[i]:f.starts[i+1]]
	length := len(whole)
	if length == 0 || whole[length-1] != f.end {
		return whole, nil
	}
	length--
	if f.end == '\n' && length > 0 && whole[length-1] == '\r' {
		length--
	}
	return whole[:length], whole[length:]
}

func (f *file) line(i int) []byte {
	line, _ := f.split(i)
	return line
}

// ending is how line i ends or, where nothing ends it, should end: like the first
// line of the file.
func (f *file) ending(i int) []byte {
	if _, own := f.split(i); own != nil {
		return own
	}
	if _, first := f.split(0); first != nil {
		return first
	}
	return newline
}

// endingBefore is that of a new line in front of line i: like the line before it,
// or at the top like the line after.
func (f *file) endingBefore(i int) []byte {
	if f.count() == 0 {
		return newline
	}
	return f.ending(max(i-1, 0))
}
