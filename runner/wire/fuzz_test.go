package wire

import (
	"bytes"
	"context"
	"os"
	"slices"
	"testing"

	"codespace/runner"
)

// FuzzFrame reads a stream as the server does: nothing in it may panic, and an
// exec that is accepted is the same when it is sent and read again.
func FuzzFrame(f *testing.F) {
	for _, m := range []message{{Kind: kindExec, ID: 1, frame: frame{body: packArgv([]string{"a", ""})}}, {Kind: kindRead, ID: 2}, {Kind: kindPing, ID: 3}} {
		sealed, err := m.seal(runner.ExecRequest{ProcessID: "proc_1"})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(sealed.head(), sealed.body...))
	}
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bytes.NewReader(stream)
		for {
			header, body, err := readFrame(r, 1<<16)
			if err != nil {
				return
			}
			var m message
			if decode(header, &m) != nil {
				continue
			}
			m.frame = frame{header: header, body: body}
			accept(t, m)
		}
	})
}

func accept(t *testing.T, m message) {
	var got runner.ExecRequest
	h := Handler{Exec: func(_ context.Context, r runner.ExecRequest, _ []*os.File) (runner.ExecResult, error) {
		got = r
		return runner.ExecResult{}, nil
	}}
	work, err := bind(h, m)
	if err != nil || m.Kind != kindExec {
		return
	}
	work(t.Context())
	first := got
	first.Argv = nil
	sealed, err := message{Kind: kindExec, ID: m.ID, frame: frame{body: packArgv(got.Argv)}}.seal(first)
	if err != nil {
		t.Fatal(err)
	}
	argv := got.Argv
	again := message{frame: frame{}}
	header, body, err := readFrame(bytes.NewReader(append(sealed.head(), sealed.body...)), maxFrame)
	if err != nil || decode(header, &again) != nil {
		t.Fatalf("cannot read what was sent: %v", err)
	}
	again.frame = frame{body: body}
	if work, err = bind(h, again); err != nil {
		t.Fatal(err)
	}
	work(t.Context())
	if !slices.Equal(argv, got.Argv) || got.ProcessID != first.ProcessID || got.Access != first.Access {
		t.Fatalf("%+v became %+v", first, got)
	}
}
