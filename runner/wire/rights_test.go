package wire_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"codespace/runner"
	"codespace/runner/wire"
)

// pipes returns n pipes' read ends, for sending, with the numbers 0 to n-1 in
// them.
func pipes(t *testing.T, n int) []*os.File {
	t.Helper()
	var ends []*os.File
	for i := range n {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, i)
		w.Close()
		ends = append(ends, r)
	}
	t.Cleanup(func() { closeFiles(ends) })
	return ends
}

func TestDescriptorsCrossInOrder(t *testing.T) {
	h := idle()
	h.Exec = func(_ context.Context, r runner.ExecRequest, files []*os.File) (runner.ExecResult, error) {
		defer closeFiles(files)
		for i, f := range files {
			if said, err := io.ReadAll(f); err != nil || string(said) != fmt.Sprint(i) {
				t.Errorf("%s: descriptor %d says %q, %v", r.ProcessID, i, said, err)
			}
			if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("%s: descriptor %d is inherited by every child", r.ProcessID, i)
			}
		}
		return runner.ExecResult{}, &runner.Fault{Code: "SEEN", Message: fmt.Sprint(len(files))}
	}
	c := connect(t, h, nil)
	ends := pipes(t, 4)
	cases := []struct {
		attached bool
		files    int
		allowed  bool
	}{{false, 0, true}, {true, 2, false}, {false, 2, false}, {true, 0, false}, {false, 1, true}, {true, 4, true}, {true, 3, true}}
	for _, e := range cases {
		_, err := c.Exec(t.Context(), runner.ExecRequest{ProcessID: fmt.Sprintf("%+v", e), Attached: e.attached}, ends[:e.files])
		if (code(err) == "SEEN") != e.allowed || uncertain(err) {
			t.Errorf("%+v: %v", e, err)
		}
		if e.allowed && !strings.Contains(err.Error(), fmt.Sprint(e.files)) {
			t.Errorf("%+v: %v", e, err)
		}
		closeFiles(ends) // they stay ours: closed or not, what was sent is another descriptor
		ends = pipes(t, 4)
	}
	ends[1].Close()
	if _, err := c.Exec(t.Context(), runner.ExecRequest{Attached: true}, ends[:3]); err == nil || uncertain(err) {
		t.Errorf("a closed file was sent: %v", err)
	}
}

func TestDescriptorsDoNotLeak(t *testing.T) {
	h := idle()
	h.Exec = func(_ context.Context, r runner.ExecRequest, files []*os.File) (runner.ExecResult, error) {
		if r.ProcessID == "panic" {
			panic("with descriptors open")
		}
		closeFiles(files)
		return runner.ExecResult{}, nil
	}
	ends := pipes(t, 4)
	round := func() {
		path, served := serve(t, wire.Peer{Digest: digest}, h)
		c, err := wire.Dial(t.Context(), path, digest, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"a", "panic", "b"} {
			c.Exec(t.Context(), runner.ExecRequest{ProcessID: id, Attached: true}, ends)
			c.Exec(t.Context(), runner.ExecRequest{ProcessID: id}, ends[:2]) // refused at once
		}
		if err := c.Ping(t.Context()); err != nil { // behind it, nothing sent before is open any more
			t.Fatal(err)
		}
		c.Close()
		<-c.Done()
		c.Exec(t.Context(), runner.ExecRequest{Attached: true}, ends)
		await(t, served)
	}
	round()
	// What an earlier test has left to be closed may be closed meanwhile, once; what is
	// closed twice makes them fewer each time.
	for last := range 3 {
		before := descriptors(t)
		for range 20 {
			round()
		}
		after := descriptors(t)
		if after == before {
			return
		}
		if after > before || last == 2 {
			t.Fatalf("%d descriptors before, %d after", before, after)
		}
	}
}

// Descriptors that do not fit their frame are closed, whichever way they come,
// and the connection is cut.
func TestServerCutsWrongDescriptors(t *testing.T) {
	exec := func(attached bool, files int) []byte {
		header := strings.Replace(goodExec, `"id":1`, fmt.Sprintf(`"id":1,"files":%d`, files), 1)
		return packed(strings.Replace(header, `"argv":null`, fmt.Sprintf(`"argv":null,"attached":%v`, attached), 1), goodArgv...)
	}
	cases := []struct {
		name  string
		frame []byte
		sent  int
		at    int // the byte they are sent with
	}{
		{"one missing", exec(true, 3), 2, 0},
		{"all missing", exec(true, 3), 0, 0},
		{"lease missing", exec(true, 4), 3, 0},
		{"one extra", exec(true, 3), 4, 0},
		{"undeclared", exec(false, 0), 1, 0},
		{"two declared, not attached", exec(false, 2), 2, 0},
		{"five", exec(true, 5), 5, 0},
		{"five for four", exec(true, 4), 5, 0},
		{"two hundred", exec(true, 4), 200, 0},
		{"extra with the last byte", exec(true, 0), 3, len(exec(true, 0)) - 1},
		{"with a ping", packed(`{"kind":"ping","id":1,"files":1}`), 1, 0},
		{"with a cancel", packed(`{"kind":"cancel","id":1,"files":1}`), 1, 0},
		{"with a status", packed(`{"kind":"status","id":1,"files":1,"payload":{"process_id":"p"}}`), 1, 0},
		{"truncated", exec(true, 3)[:40], 3, 0},
		{"nothing behind them", exec(true, 3)[:1], 3, 0},
		{"no JSON", packed("nonsense"), 3, 0},
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	round := func(t *testing.T, frame []byte, sent, at int) {
		h := forbidden(t)
		h.Subscribe = nil
		path, served := serve(t, wire.Peer{Digest: digest}, h)
		r := greeted(t, path).send(frame[:at])
		var fds []int
		for range sent {
			fds = append(fds, int(null.Fd()))
		}
		if _, _, err := r.socket.WriteMsgUnix(frame[at:], unix.UnixRights(fds...), nil); err != nil {
			t.Error(err)
		}
		r.socket.CloseWrite()
		if answer := r.frame(); strings.HasPrefix(answer, "{") {
			t.Errorf("answered %s", answer)
		}
		if err := await(t, served); err == nil {
			t.Error("nothing was noticed")
		}
		r.socket.Close()
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := descriptors(t)
			round(t, c.frame, c.sent, c.at)
			if after := descriptors(t); after != before {
				t.Errorf("%d descriptors before, %d after", before, after)
			}
		})
	}
}

// Descriptors with a greeting, or from a runner, are no business of anybody's.
func TestUninvitedDescriptors(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	rights := unix.UnixRights(int(null.Fd()))
	before := descriptors(t)

	path, served := serve(t, wire.Peer{Digest: digest}, forbidden(t))
	r := dialRaw(t, path)
	r.socket.WriteMsgUnix(packed(goodHello), rights, nil)
	if answer := r.frame(); !strings.Contains(answer, "refused") {
		t.Errorf("answered %s", answer)
	}
	if err := await(t, served); err == nil {
		t.Error("descriptors were accepted with a greeting")
	}
	r.socket.Close()

	gone := make(chan struct{})
	path = pretend(t, func(peer raw) {
		defer close(gone)
		peer.frame()
		peer.send(packed(goodHello))
		peer.frame()
		peer.socket.WriteMsgUnix(packed(`{"kind":"answer","id":1,"files":1,"payload":null}`), rights, nil)
		peer.frame() // until the client hangs up
		peer.socket.Close()
	})
	c, err := wire.Dial(t.Context(), path, digest, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()); code(err) != runner.RunnerUnavailable {
		t.Errorf("descriptors were accepted from the runner: %v", err)
	}
	await(t, c.Done())
	await(t, gone)
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
