package faults_test

import (
	"testing"
	"time"
)

// disconnects are the ways in which a client can go away. One that only stops
// taking answers is noticed with the next answer.
var disconnects = []struct {
	name string
	cut  func(*session)
}{
	{"input closed", func(s *session) { s.in.Close() }},
	{"output closed", func(s *session) {
		s.out.Close()
		s.say(map[string]any{"jsonrpc": "2.0", "id": 1 << 20, "method": "ping"})
	}},
	{"both closed", func(s *session) { s.out.Close(); s.in.Close() }},
	{"cut in the middle of a line", func(s *session) { s.in.WriteString(`{"jsonrpc":"2.0","id":`); s.in.Close() }},
}

// moments are the steps of a session after each of which the client goes away.
var moments = []struct {
	name string
	come func(t *testing.T, s *session, marker string)
}{
	{"before the greeting", func(*testing.T, *session, string) {}},
	{"after the greeting", func(t *testing.T, s *session, _ string) { s.greet(t) }},
	{"while a command is being started", func(t *testing.T, s *session, m string) { s.greet(t); s.begin("sleep", m) }},
	{"while a command runs", func(t *testing.T, s *session, m string) { s.greet(t); s.running(t, m) }},
	{"while a read waits", func(t *testing.T, s *session, m string) {
		s.greet(t)
		id := s.running(t, m)
		s.send("read_process", map[string]any{"process_id": id, "cursor": len("started\n"), "wait_ms": 20000})
	}},
	{"while a command ignores its end", func(t *testing.T, s *session, m string) {
		s.greet(t)
		id := s.started(t, "sh", "-c", "trap '' TERM HUP PIPE; echo started; sleep "+m+" & sleep "+m)
		wantMarked(t, m, 2)
		s.send("terminate_process", map[string]any{"process_id": id})
	}},
}

func (s *session) running(t *testing.T, m string) string {
	t.Helper()
	id := s.started(t, "sh", "-c", "echo started; sleep "+m+" & sleep "+m)
	wantMarked(t, m, 2)
	return id
}

// TestClientDisconnects wants the server and every command gone, whenever and
// however its client goes away, and a clean exit after the end of input.
func TestClientDisconnects(t *testing.T) {
	ended, left := 0, []footprint(nil)
	for _, moment := range moments {
		for _, disconnect := range disconnects {
			ok := t.Run(moment.name+", "+disconnect.name, func(t *testing.T) {
				s := newPlace(t).silent(t)
				m := mark()
				moment.come(t, s, m)
				f := footprintOf(s.pid())
				disconnect.cut(s)
				code := s.wait(t, 10*time.Second)
				if disconnect.name == "input closed" && code != 0 {
					t.Errorf("exit %d after the end of input; stderr: %s", code, &s.stderr)
				}
				wantNoneMarked(t, m)
				wantNobodyBut(t)
				left = append(left, f)
			})
			if ok {
				ended++
			}
		}
	}
	newPlace(t).wantRunWorks(t) // the next start sweeps
	for _, f := range left {
		f.wantNothingLeft(t)
	}
	t.Logf("%d of %d disconnects ended everything", ended, len(moments)*len(disconnects))
}

// TestLogReaderGoesAway closes the other end of standard error. What nobody reads
// any more must not cost a command its life, nor its status.
func TestLogReaderGoesAway(t *testing.T) {
	p := newPlace(t)
	s, stderr := p.withLog(t)
	s.greet(t)
	id := s.started(t, "sh", "-c", "echo started; sleep 0.3; exit 3")
	stderr.Close()
	if r := s.exited(t, id, 5*time.Second); r.text("termination") != "exited" || r.fields["exit_code"] != 3.0 {
		t.Errorf("status of a command after the log was closed: %v", r)
	}
	s.works(t)
	s.end(t)
}
