package sandbox_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"codespace/sandbox"
	"codespace/sandbox/message"
)

// A request that could mean anything else ends the service, and nothing is asked
// of the builder.
func TestServiceEndsAtBreach(t *testing.T) {
	const release = `{"version":3,"id":1,"verb":"release","sandbox":"a"}`
	cases := []struct {
		name, request string
		descriptors   int
		want          string
	}{
		{"garbage", "garbage", 0, "cannot read request"},
		{"binary", "CELL\x07\x00\x01\x00", 0, "cannot read request"},
		{"two values", release + release, 0, "cannot read request"},
		{"cut short", release[:len(release)-1], 0, "cannot read request"},
		{"wrong type", strings.Replace(release, `"id":1`, `"id":"1"`, 1), 0, "cannot read request"},
		{"no version", strings.Replace(release, `"version":3,`, "", 1), 0, "version 0"},
		{"newer version", strings.Replace(release, `:3,`, ":4,", 1), 0, "version 4"},
		{"older version", strings.Replace(release, `:3,`, ":2,", 1), 0, "version 2"},
		{"a descriptor", release, 1, "1 descriptors"},
		{"four descriptors", release, 4, "4 descriptors"},
		{"five descriptors", release, 5, "larger than"},
		{"a byte too long", release + strings.Repeat(" ", message.MaxBytes+1-len(release)), 0, "larger than"},
		{"much too long", release + strings.Repeat(" ", 150_000), 1, "larger than"},
	}
	withoutCollector(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := descriptors(t)
			ours, served := serve(t, forbidden(t))
			send(t, ours, c.request, c.descriptors)
			if err := await(t, served); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it ended with %v", err)
			}
			if n, _ := ours.Read(make([]byte, 1)); n != 0 {
				t.Error("it was answered")
			}
			ours.Close()
			settles(t, before)
		})
	}
	b := forbidden(t) // the control: the same request without a breach
	b.Release = func(id string) error { return errors.New("seen " + id) }
	if answer := ask(t, b, release); !strings.Contains(answer, "seen a") {
		t.Errorf("answered %s", answer)
	}
}

// send sends past the checks of the client.
func send(t *testing.T, to *os.File, content string, n int) {
	t.Helper()
	fd, err := message.New(duplicate(t, to))
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var files []*os.File
	for range n {
		files = append(files, null)
	}
	if err := fd.Send([]byte(content), files...); err != nil {
		t.Fatal(err)
	}
}

// A request that is understood and cannot be served is answered.
func TestServiceAnswersWhatItCannotServe(t *testing.T) {
	for _, request := range []string{
		`{"version":3,"id":7,"verb":"destroy"}`,
		`{"version":3,"id":7}`,
		`{"version":3,"id":7,"verb":"prepare"}`,
		`{"version":3,"id":7,"verb":"prepare","plan":null}`,
		`{"version":3,"id":7,"verb":"prepare","plan":{}}`,
	} {
		var answer struct {
			ID     uint64           `json:"id"`
			Failed *sandbox.Failure `json:"failed"`
		}
		got := ask(t, forbidden(t), request)
		if err := json.Unmarshal([]byte(got), &answer); err != nil || answer.ID != 7 || answer.Failed == nil {
			t.Errorf("%s: answered %s, %v", request, got, err)
		}
	}
}

// What is being done while the service ends is told to nobody, and the
// descriptors it would have brought are closed.
func TestServiceEndsDuringWork(t *testing.T) {
	withoutCollector(t)
	before := descriptors(t)
	for range 100 {
		working, finish := make(chan struct{}), make(chan struct{})
		hangup, made, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		b := forbidden(t)
		b.Cell = func(string, sandbox.Wish) (sandbox.Made, error) {
			close(working)
			<-finish
			return sandbox.Made{Files: []*os.File{made}}, nil
		}
		ours, served := serve(t, b)
		send(t, ours, `{"version":3,"id":1,"verb":"cell","sandbox":"a"}`, 0)
		await(t, working)
		ours.Close()
		if err := await(t, served); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		close(finish)
		hangup.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := hangup.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("the descriptor is still open: %v", err)
		}
		hangup.Close()
	}
	settles(t, before)
}

// An answer that cannot be understood ends the client: whatever it waits for is
// lost, and no descriptor of it stays open.
func TestClientEndsAtBreach(t *testing.T) {
	cases := []struct {
		name, answer string
		descriptors  int
	}{
		{"garbage", "garbage", 0},
		{"garbage with descriptors", "garbage", 4},
		{"cut short", `{"id":1`, 2},
		{"wrong type", `{"id":-1}`, 2},
		{"five descriptors", `{"id":1}`, 5},
		{"too long", `{"id":1}` + strings.Repeat(" ", message.MaxBytes), 2},
	}
	withoutCollector(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := descriptors(t)
			ours, theirs, err := message.Pair()
			if err != nil {
				t.Fatal(err)
			}
			h := client(t, ours)
			lost := make(chan error, 1)
			go func() {
				_, err := h.Cell(t.Context(), "a", sandbox.Wish{Writable: true})
				lost <- err
			}()
			if n, err := theirs.Read(make([]byte, 1000)); n == 0 || err != nil {
				t.Fatal(err)
			}
			send(t, theirs, c.answer, c.descriptors)
			if err := await(t, lost); !errors.Is(err, sandbox.ErrHelperLost) {
				t.Errorf("the call got %v", err)
			}
			await(t, h.Done())
			theirs.Close()
			settles(t, before)
		})
	}
}

// Answers to nobody, and descriptors where none belong, are dropped; the client
// goes on.
func TestClientDropsStrayAnswers(t *testing.T) {
	withoutCollector(t)
	h, p := pretend(t)
	before := descriptors(t)
	for i := range 20 {
		left := make(chan error, 1)
		go func() { left <- h.Release(t.Context(), "a") }()
		id := p.request().ID
		p.answer(id+1, 4)
		p.answer(0, 1)
		p.answer(id, i%5)
		if err := await(t, left); err != nil {
			t.Fatal(err)
		}
		p.answer(id, 2) // a second one
	}
	left := make(chan error, 1)
	go func() { left <- h.Release(t.Context(), "a") }()
	p.answer(p.request().ID, 0)
	if err := await(t, left); err != nil {
		t.Fatal(err)
	}
	settles(t, before)
}

// A cell needs exactly its socket and its pidfd; otherwise it is no cell.
func TestCellWithOtherDescriptors(t *testing.T) {
	withoutCollector(t)
	h, p := pretend(t)
	before := descriptors(t)
	for _, n := range []int{0, 1, 2, 3, 4} { // two of /dev/null are no socket and no pidfd
		made := make(chan error, 1)
		go func() {
			c, err := h.Cell(t.Context(), "a", sandbox.Wish{Writable: true})
			if err == nil {
				c.Close()
			}
			made <- err
		}()
		p.answer(p.request().ID, n)
		if err := await(t, made); err == nil || errors.Is(err, sandbox.ErrHelperLost) {
			t.Errorf("%d descriptors: %v", n, err)
		}
	}
	settles(t, before)
}
