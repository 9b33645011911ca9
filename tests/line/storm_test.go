package line_test

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

var resizes = flag.Int("resizes", 100_000, "how many resizes race with exits, or as many of them as there is time for")

// storm is what is sent in one go: resizes of processes that end meanwhile, and
// the start of the next ones. Its answers come in any order.
type storm struct {
	w        *wired
	next     int            // id of a request
	answered map[string]int // resizes by their code, "" for ok
	ids      []string       // the processes of this lot
	old      string         // one whose handle was given up
	took     time.Duration  // by the last lot
}

const (
	lotSize  = 1000 // resizes
	lotWidth = 8    // processes they are of
	inFlight = 250  // requests not answered yet: the most are 256
	enough   = 45 * time.Second
)

// lot sends n resizes and the start of the next processes, and takes every answer.
func (s *storm) lot(n int) {
	s.w.t.Helper()
	var lines []string
	starts, began := map[string]bool{}, time.Now()
	for i := range lotWidth {
		s.next++
		starts[fmt.Sprint(s.next)] = true
		lines = append(lines, calling(s.next, "exec_command", s.short(i)))
	}
	for i := range n {
		s.next++
		lines = append(lines, calling(s.next, "process_resize", map[string]any{"process_id": s.any(i), "rows": 1 + i%100, "cols": 2 + i%200}))
	}
	room, sent := make(chan bool, inFlight), make(chan error, 1)
	go func() { sent <- s.send(lines, room) }()
	s.ids = s.ids[:0]
	for range lines {
		s.take(starts)
		<-room
	}
	must(s.w.t, <-sent)
	if s.old == "" {
		s.old = s.ids[0]
	}
	s.took = time.Since(began)
}

// send sends lines as long as there is room, which their answers make.
func (s *storm) send(lines []string, room chan<- bool) error {
	for _, line := range lines {
		room <- true
		if _, err := io.WriteString(s.w.in, line); err != nil {
			return err
		}
	}
	return nil
}

// any is the process of the i-th resize.
func (s *storm) any(i int) string {
	if k := i % (len(s.ids) + 1); k < len(s.ids) {
		return s.ids[k]
	}
	return s.old
}

// short is a command that ends somewhen during the next lot; one of them has no
// terminal.
func (s *storm) short(i int) map[string]any {
	lasting := fmt.Sprintf("%.3f", s.took.Seconds()*float64(i)/lotWidth)
	return map[string]any{"workspace_id": "site", "command": []string{"sleep", lasting}, "tty": i != lotWidth-1, "access": "read"}
}

func (s *storm) take(starts map[string]bool) {
	s.w.t.Helper()
	m, more := s.w.next()
	if !more || m.Error != nil {
		s.w.t.Fatalf("instead of an answer: %+v; stderr %q", m, s.w.stderr.String())
	}
	a := m.answer()
	if !starts[string(m.ID)] {
		if code := a.text("code"); a.isError == (code == "") || !a.isError && a.text("ok") != "true" {
			s.w.t.Fatalf("a resize answers %v", a.fields)
		}
		s.answered[a.text("code")]++
		return
	}
	if a.text("dispatch_status") != "confirmed" {
		s.w.t.Fatalf("a command does not start: %v", a.fields)
	}
	s.ids = append(s.ids, a.text("process_id"))
}

// Resizes during ends answer ok or one of three codes, and harm nobody.
func TestResizesRaceWithExits(t *testing.T) {
	n := *resizes
	if testing.Short() {
		n = min(n, 5000)
	}
	w := wire(t, "--config", crowd(t, workspace(t), 256))
	s := &storm{w: w, answered: map[string]int{}}
	w.send(hello)
	w.answered("hello")
	w.send(calling(0, "exec_command", map[string]any{"workspace_id": "site", "tty": true, "command": shell("read x; stty size; exit 7")}))
	survivor := w.answered(0).answer().text("process_id")
	for range 9 { // until the first handle is one of those given up
		s.lot(0)
	}
	done := 0
	for began := time.Now(); done < n && (time.Since(began) < enough || done < 5000); {
		lot := min(lotSize, n-done)
		s.lot(lot)
		done += lot
	}
	sum := 0
	for code, count := range s.answered {
		switch code {
		case "", "PROCESS_NOT_RUNNING", "PROCESS_NOT_FOUND", "PROCESS_NOT_TTY":
			sum += count
		default:
			t.Errorf("%d resizes answer %s", count, code)
		}
	}
	if len(s.answered) != 4 {
		t.Errorf("the resizes met only %v", s.answered)
	}
	t.Logf("%d of %d resizes answered as documented, %d were meant: %v", sum, done, n, s.answered)
	w.send(calling(1, "process_resize", map[string]any{"process_id": survivor, "rows": 33, "cols": 99}))
	w.answered(1).answer().wants(t, fields{"ok": true})
	w.send(calling(2, "write_stdin", map[string]any{"process_id": survivor, "data": "go\n"}))
	w.answered(2).answer().wants(t, fields{"accepted_bytes": 3})
	said := ""
	for cursor := int64(0); !strings.HasSuffix(said, "33 99\r\n"); {
		w.send(calling(3, "read_process", map[string]any{"process_id": survivor, "cursor": cursor, "wait_ms": 20000}))
		a := w.answered(3).answer()
		if said += a.text("chunk"); a.isError || a.text("eof") == "true" && a.text("chunk") == "" {
			t.Fatalf("the one that went on through it said %q; %v", said, a.fields)
		}
		cursor = a.number("cursor")
	}
}
