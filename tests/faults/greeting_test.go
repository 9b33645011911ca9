package faults_test

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// frame is one frame of the runner socket: length, header length, header.
func frame(header string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)))
	return append(binary.BigEndian.AppendUint32(b, uint32(len(header))), header...)
}

func greeting(version int, digest string) []byte {
	b, err := json.Marshal(map[string]any{"kind": "hello", "magic": "codespace-runner", "version": version, "digest": digest})
	if err != nil {
		panic(err) // plain values always marshal
	}
	return frame(string(b))
}

// converse dials a new runner, sends and returns what it answers.
func (h handmade) converse(t testing.TB, send []byte, closeAfter bool) (*program, string) {
	t.Helper()
	h.again(t)
	cmd, path := h.serving(t)
	p := start(t, cmd)
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write(send)
	if closeAfter {
		return p, ""
	}
	c.SetDeadline(time.Now().Add(exitLimit))
	said, _ := io.ReadAll(io.LimitReader(c, 60))
	rest := make([]byte, 4096)
	n, _ := c.Read(rest)
	return p, string(said) + string(rest[:n])
}

// TestRunnerRefusesWrongGreeting speaks to a runner like an older, a newer, a
// hostile and, as the control, its own gateway.
func TestRunnerRefusesWrongGreeting(t *testing.T) {
	h := newHandmade(t)
	p, said := h.converse(t, greeting(1, "none"), false)
	_, after, _ := strings.Cut(said, `not \"`)
	digest, _, _ := strings.Cut(after, `\"`)
	if code := p.wait(t, exitLimit); code == 0 || digest == "" {
		t.Fatalf("a wrong digest: exit %d, answer %q", code, said)
	}
	for name, send := range map[string][]byte{
		"an older version": greeting(0, digest),
		"a newer version":  greeting(2, digest),
		"garbage":          []byte(strings.Repeat("GET / HTTP/1.1\r\n", 8)),
		"a huge length":    {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"a huge header":    {0, 0, 0, 8, 0xff, 0xff, 0xff, 0xff, 'x', 'x', 'x', 'x'},
		"no object":        frame("null"),
		"a command first":  frame(`{"kind":"exec","id":1}`),
	} {
		t.Run(name, func(t *testing.T) {
			p, said := h.converse(t, send, false)
			if code := p.wait(t, exitLimit); code == 0 || strings.Contains(said, `"kind":"hello"`) {
				t.Errorf("exit %d, answer %q", code, said)
			}
			wantNobodyBut(t)
		})
	}
	if p, _ := h.converse(t, nil, true); p.wait(t, exitLimit) == 0 {
		t.Error("a gateway that says nothing and leaves is served")
	}
	h.wantServed(t, digest)
}

// wantServed is the control: the right greeting is answered, and the end of the
// connection is the end of the runner.
func (h handmade) wantServed(t testing.TB, digest string) {
	t.Helper()
	h.again(t)
	cmd, path := h.serving(t)
	p := start(t, cmd)
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c.Write(greeting(1, digest))
	said := make([]byte, 4096)
	c.SetDeadline(time.Now().Add(exitLimit))
	n, err := c.Read(said)
	if err != nil || !strings.Contains(string(said[:n]), `"kind":"hello"`) {
		t.Errorf("control: answer %q, %v; stderr: %s", said[:n], err, &p.stderr)
	}
	c.Close()
	if code := p.wait(t, exitLimit); code != 0 {
		t.Errorf("control: exit %d; stderr: %s", code, &p.stderr)
	}
}
