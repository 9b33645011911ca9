package sandbox_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"codespace/sandbox"
	"codespace/sandbox/message"
)

// raw speaks the preparation protocol in its own bytes, and keeps the descriptors
// of a cell as they come.
type raw struct {
	*program
	*message.Channel
	next uint64
}

func startRaw(t *testing.T) *raw {
	t.Helper()
	p := launchHelper(t)
	ch, err := message.New(p.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ch.Close() }) // before end
	return &raw{program: p, Channel: ch}
}

// ask sends a request and returns the descriptors of its answer, which must not be
// a failure.
func (r *raw) ask(request map[string]any) []*os.File {
	r.t.Helper()
	r.next++
	request["version"], request["id"] = 3, r.next
	b, err := json.Marshal(request)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.Send(b); err != nil {
		r.t.Fatal(err)
	}
	b, files, err := r.Receive(make([]byte, message.MaxBytes))
	if err != nil || bytes.Contains(b, []byte(`"failed"`)) {
		r.t.Fatalf("%v: %s, %v", request["verb"], b, err)
	}
	return files
}

func (r *raw) prepare() string {
	r.t.Helper()
	p := r.plan(workspace(r.t))
	p.ID = r.prefix + "-1"
	r.ask(map[string]any{"verb": "prepare", "plan": p})
	return p.ID
}

// cell is the socket of a new cell and the pidfd of its PID 1.
func (r *raw) cell(id string) (*message.Channel, *os.File) {
	r.t.Helper()
	files := r.ask(map[string]any{"verb": "cell", "sandbox": id, "wish": sandbox.Wish{Writable: true}})
	if len(files) != 2 {
		r.t.Fatalf("%d descriptors", len(files))
	}
	ch, err := message.New(files[0])
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { ch.Close(); files[1].Close() })
	return ch, files[1]
}

// A cell whose runner is gone before it launched anything ends by itself.
func TestUnlaunchedCellEnds(t *testing.T) {
	r := startRaw(t)
	id := r.prepare()
	for range 10 {
		ch, pidfd := r.cell(id)
		ch.Close()
		awaitPIDFD(t, int(pidfd.Fd()))
	}
}

func launchOf(change func(*message.Message)) []byte {
	m := message.Message{Kind: message.KindLaunch}
	change(&m)
	return m.Encode()
}

// A launch that is malformed runs nothing: the cell says so and ends. The factory
// goes on.
func TestMalformedLaunchFails(t *testing.T) {
	r := startRaw(t)
	id := r.prepare()
	good := launchOf(func(m *message.Message) { m.String(message.TagArg, "/bin/true").String(message.TagCwd, "/") })
	body := launchOf(func(m *message.Message) { m.Uint64(message.TagBody, uint64(len(good))) })
	nested := launchOf(func(m *message.Message) { m.Uint64(message.TagBody, uint64(len(body))) })
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	sealed := func(b []byte) *os.File {
		f, err := message.Sealed("launch", b)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	three := []*os.File{null, null, null}
	cases := []struct {
		name    string
		content []byte
		files   []*os.File
		want    message.Kind
	}{
		{"the control", good, three, message.KindStarted},
		{"the control in a memfd", body, append(three[:3:3], sealed(good)), message.KindStarted},
		{"garbage", []byte("garbage"), three, message.KindFailed},
		{"another kind", new(message.Message{Kind: message.KindSignal}).Encode(), three, message.KindFailed},
		{"a flipped version", append(append(bytes.Clone(good[:6]), 2, 0), good[8:]...), three, message.KindFailed},
		{"cut short", good[:len(good)-1], three, message.KindFailed},
		{"no descriptors", good, nil, message.KindFailed},
		{"two descriptors", good, three[:2], message.KindFailed},
		{"four descriptors", good, append(three[:3:3], null), message.KindFailed},
		{"five descriptors", good, append(three[:3:3], null, null), 0},
		{"a body without a memfd", body, three, message.KindFailed},
		{"a body in a device", body, append(three[:3:3], null), message.KindFailed},
		{"a body of another length", body, append(three[:3:3], sealed(append(good, 0))), message.KindFailed},
		{"a body in a body", nested, append(three[:3:3], sealed(body)), message.KindFailed},
		{"a malformed body", body, append(three[:3:3], sealed(bytes.Repeat([]byte("x"), len(good)))), message.KindFailed},
		{"too long", bytes.Repeat(good, 3000), three, 0},
	}
	for _, c := range cases {
		ch, pidfd := r.cell(id)
		if err := ch.Send(c.content, c.files...); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		b, files, err := ch.Receive(make([]byte, 4096))
		m, _ := message.Decode(b)
		if m.Kind != c.want || (err == nil) != (c.want != 0) || len(files) > 0 {
			t.Errorf("%s: answered %d, %v", c.name, m.Kind, err)
		}
		if f := sandbox.FailureOf(m); c.want == message.KindFailed && f.Step != "launch" {
			t.Errorf("%s: %v", c.name, f)
		}
		awaitPIDFD(t, int(pidfd.Fd()))
	}
}

// Garbage, another version and uninvited descriptors end the helper with all it
// has made; it says so.
func TestHelperEndsAtBreach(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for request, want := range map[string]string{
		"garbage": "cannot read request",
		`{"version":9,"id":9,"verb":"cell","sandbox":"x"}`: "cannot serve version 9",
		`{"version":3,"id":9,"verb":"release"}`:            "cannot accept 1 descriptors",
	} {
		r := startRaw(t)
		ch, pidfd := r.cell(r.prepare())
		var files []*os.File
		if want == "cannot accept 1 descriptors" {
			files = []*os.File{null}
		}
		if err := r.Send([]byte(request), files...); err != nil {
			t.Fatal(err)
		}
		r.await(r.gone)
		awaitPIDFD(t, int(pidfd.Fd()))
		if said := r.stderr.String(); !bytes.Contains([]byte(said), []byte(want)) || r.cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%s: %v, %s", request, r.cmd.ProcessState, said)
		}
		ch.Close()
		r.once.Do(r.leftovers) // it ended as it should, but not well
		r.lifeline.Close()
		r.socket.Close()
	}
}
