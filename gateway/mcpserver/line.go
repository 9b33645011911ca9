package mcpserver

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine bounds one message in bytes, without its newline: room for the largest patch
// also where all but ASCII is written as \u and four digits.
const maxLine = 32 << 20

// line is one line of input, or the fact that there was one too long to keep.
type line struct {
	text    []byte
	tooLong bool
}

// readLine reads up to the next newline or the end of input. Of a line longer
// than limit nothing is kept. It returns io.EOF only with nothing to handle.
func readLine(in *bufio.Reader, limit int) (line, error) {
	var l line
	size := 0
	for {
		part, err := in.ReadSlice('\n')
		text := bytes.TrimSuffix(part, []byte{'\n'})
		size += len(text)
		if size > limit {
			l = line{tooLong: true}
		} else {
			l.text = append(l.text, text...)
		}
		switch {
		case err == nil:
			return l, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case size > 0 && err == io.EOF:
			return l, nil
		}
		return line{}, err
	}
}
