package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codespace/runner"
)

// model is the reference: every byte there ever was.
type model struct {
	limit  int
	all    []byte
	closed bool
}

func (m *model) read(cursor, size int) runner.ReadResult {
	retained := max(0, len(m.all)-m.limit)
	from := max(cursor, retained)
	next := min(from+size, len(m.all))
	return runner.ReadResult{
		Chunk:        m.all[from:next],
		Cursor:       int64(next),
		EOF:          m.closed && next == len(m.all),
		Lost:         int64(from - cursor),
		RetainedFrom: int64(retained),
	}
}

func same(a, b runner.ReadResult) bool {
	return bytes.Equal(a.Chunk, b.Chunk) && a.Cursor == b.Cursor && a.EOF == b.EOF &&
		a.Lost == b.Lost && a.RetainedFrom == b.RetainedFrom
}

func noise(r *rand.Rand, n int) []byte {
	p := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(r.Uint32()), byte(r.Uint32())}).Read(p)
	return p
}

func TestOutputAgreesWithModel(t *testing.T) {
	for seed, limit := range []int{1, 2, 7, 4095, 4096, 4097, 65536, 200_000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			o, m := runner.NewOutput(int64(limit)), &model{limit: limit}
			for range min(400, 6_000_000/limit) {
				step(t, r, o, m)
			}
			o.Close()
			m.closed = true
			for range 100 {
				compare(t, r, o, m)
			}
		})
	}
}

// step appends something by one of the two ways and compares some reads.
func step(t *testing.T, r *rand.Rand, o *runner.Output, m *model) {
	t.Helper()
	sizes := []int{0, 1, 1, 2, r.IntN(5000), r.IntN(3 * m.limit), m.limit, m.limit + 1}
	p := noise(r, sizes[r.IntN(len(sizes))])
	m.all = append(m.all, p...)
	if r.IntN(2) == 0 {
		if n, err := o.Write(p); n != len(p) || err != nil {
			t.Fatalf("Write: %d, %v", n, err)
		}
	} else if n, err := o.ReadFrom(bytes.NewReader(p)); int(n) != len(p) || err != nil {
		t.Fatalf("ReadFrom: %d, %v", n, err)
	}
	compare(t, r, o, m)
}

func compare(t *testing.T, r *rand.Rand, o *runner.Output, m *model) {
	t.Helper()
	total := len(m.all)
	if got, from, closed := o.Extent(); got != int64(total) || from != int64(max(0, total-m.limit)) || closed != m.closed {
		t.Fatalf("Extent: %d %d %v, want %d", got, from, closed, total)
	}
	for _, cursor := range []int{0, total, max(0, total-m.limit), max(0, total-m.limit-1), r.IntN(total + 1)} {
		size := 1 + r.IntN(2*m.limit)
		got, err := o.Read(t.Context(), int64(cursor), size, 0)
		if want := m.read(cursor, size); err != nil || !same(got, want) {
			t.Fatalf("Read(%d, %d): cursor %d lost %d from %d eof %v, %d bytes, %v; want cursor %d lost %d, %d bytes",
				cursor, size, got.Cursor, got.Lost, got.RetainedFrom, got.EOF, len(got.Chunk), err, want.Cursor, want.Lost, len(want.Chunk))
		}
	}
}

func TestOutputAtLimitAndBeyond(t *testing.T) {
	const limit = runner.OutputLimit
	for _, way := range []string{"bytes", "whole", "reader"} {
		t.Run(way, func(t *testing.T) {
			o := runner.NewOutput(limit)
			fill(t, o, way, bytes.Repeat([]byte{'a'}, limit))
			if got, err := o.Read(t.Context(), 0, limit, 0); err != nil || len(got.Chunk) != limit || got.Lost != 0 || got.RetainedFrom != 0 {
				t.Fatalf("at limit: %d bytes, lost %d, %v", len(got.Chunk), got.Lost, err)
			}
			fill(t, o, way, []byte{'b'})
			got, err := o.Read(t.Context(), 0, limit+1, 0)
			if err != nil || len(got.Chunk) != limit || got.Lost != 1 || got.RetainedFrom != 1 || got.Cursor != limit+1 {
				t.Fatalf("at limit+1: %d bytes, lost %d, %v", len(got.Chunk), got.Lost, err)
			}
			if got.Chunk[limit-1] != 'b' || got.Chunk[0] != 'a' {
				t.Fatal("at limit+1: wrong bytes")
			}
			fill(t, o, way, bytes.Repeat([]byte{'c'}, 3*limit))
			if got, err = o.Read(t.Context(), 5, limit, 0); err != nil || got.Lost != 3*limit+1-5 || !bytes.Equal(got.Chunk, bytes.Repeat([]byte{'c'}, limit)) {
				t.Fatalf("beyond: lost %d, %v", got.Lost, err)
			}
		})
	}
}

func fill(t *testing.T, o *runner.Output, way string, p []byte) {
	t.Helper()
	var err error
	switch way {
	case "bytes":
		for i := range p {
			_, err = o.Write(p[i : i+1])
		}
	case "whole":
		_, err = o.Write(p)
	case "reader":
		_, err = o.ReadFrom(bytes.NewReader(p))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestOutputRefusesCursor(t *testing.T) {
	o := runner.NewOutput(10)
	o.Write([]byte("hello"))
	for _, cursor := range []int64{6, 1 << 62, -1} {
		_, err := o.Read(t.Context(), cursor, 1, time.Hour)
		var fault *runner.Fault
		if !errors.As(err, &fault) || fault.Code != runner.InvalidArgument {
			t.Fatalf("cursor %d: %v", cursor, err)
		}
		if cursor > 0 && (fault.Details["cursor"] != cursor || fault.Details["output_total"] != int64(5)) {
			t.Fatalf("details: %v", fault.Details)
		}
	}
	if _, err := o.Read(t.Context(), 0, 0, 0); err == nil {
		t.Fatal("a read of 0 bytes was accepted")
	}
}

func TestOutputAfterClose(t *testing.T) {
	o := runner.NewOutput(10)
	o.Write([]byte("hello"))
	o.Close()
	if _, err := o.Write([]byte("x")); err != io.ErrClosedPipe {
		t.Fatalf("Write after Close: %v", err)
	}
	if _, err := o.ReadFrom(bytes.NewReader([]byte("x"))); err != io.ErrClosedPipe {
		t.Fatalf("ReadFrom after Close: %v", err)
	}
	for cursor, eof := range map[int64]bool{0: false, 1: true, 5: true} {
		if got, err := o.Read(t.Context(), cursor, 4, time.Hour); err != nil || got.EOF != eof {
			t.Fatalf("cursor %d: eof %v, %v", cursor, got.EOF, err)
		}
	}
}

// waitingRead runs one waiting read at the end of o within a bubble and calls
// happen once it waits; it returns the answer and how long it took.
func waitingRead(t *testing.T, o *runner.Output, happen func(cancel func())) (runner.ReadResult, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cursor, _, _ := o.Extent()
	answer := make(chan runner.ReadResult)
	begin := time.Now()
	go func() {
		got, err := o.Read(ctx, cursor, 100, 20*time.Second)
		if err != nil {
			t.Error(err)
		}
		answer <- got
	}()
	synctest.Wait()
	select {
	case got := <-answer:
		t.Fatalf("did not wait: %+v", got)
	default:
	}
	happen(cancel)
	return <-answer, time.Since(begin)
}

func TestOutputWaitEnds(t *testing.T) {
	cases := []struct {
		name   string
		happen func(o *runner.Output, cancel func())
		chunk  string
		eof    bool
		took   time.Duration
	}{
		{"at the first byte", func(o *runner.Output, _ func()) { o.Write([]byte("x")) }, "x", false, 0},
		{"at the end", func(o *runner.Output, _ func()) { o.Close() }, "", true, 0},
		{"at its limit", func(*runner.Output, func()) {}, "", false, 20 * time.Second},
		{"at cancellation", func(_ *runner.Output, cancel func()) { cancel() }, "", false, 0},
		{"not at an empty write", func(o *runner.Output, _ func()) { o.Write(nil) }, "", false, 20 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := runner.NewOutput(100)
				o.Write([]byte("before"))
				got, took := waitingRead(t, o, func(cancel func()) { c.happen(o, cancel) })
				if string(got.Chunk) != c.chunk || got.EOF != c.eof || took != c.took || got.Cursor != int64(6+len(c.chunk)) {
					t.Fatalf("got %+v after %v", got, took)
				}
			})
		})
	}
}

// A reader that is woken late, when its cursor is already lost, is told so.
func TestOutputWaitCountsLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := runner.NewOutput(3)
		got, _ := waitingRead(t, o, func(func()) { o.ReadFrom(bytes.NewReader([]byte("abcdefgh"))) })
		if string(got.Chunk) != "fgh" || got.Lost != 5 || got.Cursor != 8 {
			t.Fatalf("got %+v", got)
		}
	})
}

// Sixteen readers follow a pipe that is filled without regard to them: what each
// got and what it was told it lost add up to the whole, byte for byte.
func TestOutputConcurrentReaders(t *testing.T) {
	const limit, total = 10_000, 4 << 20
	o := runner.NewOutput(limit)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	var all sync.WaitGroup
	all.Go(func() {
		o.ReadFrom(read)
		o.Close()
	})
	for i := range 16 {
		all.Go(func() { follow(t, o, 1+i*i*10, total) })
	}
	r := rand.New(rand.NewPCG(1, 2))
	for sent := 0; sent < total; {
		p := make([]byte, min(total-sent, 1+r.IntN(50_000)))
		for i := range p {
			p[i] = pattern(sent + i)
		}
		write.Write(p)
		sent += len(p)
	}
	write.Close()
	all.Wait()
}

func pattern(offset int) byte { return byte(offset ^ offset>>8 ^ offset>>16) }

func follow(t *testing.T, o *runner.Output, size, total int) {
	var cursor, got, lost int64
	for eof := false; !eof; {
		r, err := o.Read(t.Context(), cursor, size, time.Minute)
		if err != nil {
			t.Error(err)
			return
		}
		if r.Cursor != cursor+r.Lost+int64(len(r.Chunk)) {
			t.Errorf("cursor %d + lost %d + %d bytes is not %d", cursor, r.Lost, len(r.Chunk), r.Cursor)
			return
		}
		for i, b := range r.Chunk {
			if b != pattern(int(cursor+r.Lost)+i) {
				t.Errorf("wrong byte at %d", int(cursor+r.Lost)+i)
				return
			}
		}
		cursor, got, lost, eof = r.Cursor, got+int64(len(r.Chunk)), lost+r.Lost, r.EOF
	}
	if got+lost != int64(total) {
		t.Errorf("%d got + %d lost of %d", got, lost, total)
	}
}

// BenchmarkOutput compares cat through a Go pipe into nothing with cat through a
// pipe into an Output that a reader follows.
func BenchmarkOutput(b *testing.B) {
	const size = 1 << 30
	run := func(b *testing.B, drain func(io.Reader)) {
		b.SetBytes(size)
		for b.Loop() {
			cat := exec.Command("sh", "-c", fmt.Sprintf("head -c %d /dev/zero | cat", size))
			out, err := cat.StdoutPipe()
			if err != nil {
				b.Fatal(err)
			}
			if err := cat.Start(); err != nil {
				b.Fatal(err)
			}
			drain(out)
			cat.Wait()
		}
	}
	b.Run("pipe", func(b *testing.B) {
		p := make([]byte, 128<<10)
		run(b, func(r io.Reader) {
			for err := error(nil); err == nil; {
				_, err = r.Read(p)
			}
		})
	})
	b.Run("output", func(b *testing.B) {
		run(b, func(r io.Reader) {
			o := runner.NewOutput(runner.OutputLimit)
			o.ReadFrom(r)
			o.Close()
		})
	})
	b.Run("output followed", func(b *testing.B) {
		run(b, func(r io.Reader) {
			o := runner.NewOutput(runner.OutputLimit)
			go func() {
				o.ReadFrom(r)
				o.Close()
			}()
			var cursor int64
			for eof := false; !eof; {
				got, _ := o.Read(context.Background(), cursor, 64<<10, time.Minute)
				cursor, eof = got.Cursor, got.EOF
			}
		})
	})
}
