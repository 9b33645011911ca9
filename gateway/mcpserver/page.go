package mcpserver

import (
	"context"
	"time"
	"unicode/utf8"

	"codespace/runner"
)

// page is one request for output.
type page struct {
	process string
	cursor  int64
	max     int // bytes of output
	wait    time.Duration
	exact   bool // base64 instead of text
}

// readFunc is the gateway's Read for one caller.
type readFunc func(context.Context, runner.ReadRequest) (runner.ReadResult, error)

// fetch reads the page. Where the process has written only the beginning of a
// character it goes on waiting for the rest, within the same wait.
func (p *page) fetch(ctx context.Context, read readFunc) (runner.ReadResult, error) {
	deadline := time.Now().Add(p.wait)
	request := runner.ReadRequest{
		ProcessID: p.process,
		Cursor:    p.cursor,
		MaxBytes:  max(p.max, utf8.UTFMax), // one character is shown whole
		Wait:      p.wait,
	}
	for {
		got, err := patient(ctx, read, request)
		left := time.Until(deadline)
		if err != nil || p.exact || got.EOF || !unfinished(got.Chunk) || left <= 0 || ctx.Err() != nil {
			return got, err
		}
		more := request
		more.Cursor, more.Wait = got.Cursor, left
		if next, err := patient(ctx, read, more); err != nil || len(next.Chunk) == 0 && !next.EOF {
			return got, err
		}
		request.Wait = 0
	}
}

// unfinished tells whether chunk is nothing but the beginning of a character.
func unfinished(chunk []byte) bool { return len(chunk) > 0 && !utf8.FullRune(chunk) }

// patient reads, and where the wait is cut short it answers with what is there.
func patient(ctx context.Context, read readFunc, request runner.ReadRequest) (runner.ReadResult, error) {
	got, err := read(ctx, request)
	if err == nil || ctx.Err() == nil {
		return got, err
	}
	request.Wait = 0
	return read(context.WithoutCancel(ctx), request)
}
