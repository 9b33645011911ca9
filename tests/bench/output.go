package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"codespace/runner"
	"codespace/runner/wire"
)

// outputs measures how fast what a command prints is read back. The runner never
// makes a command wait for a reader: what a workspace does not retain and nobody
// has read by then is lost, and counted.
func outputs(ctx context.Context, r report, o options, g *grounds) error {
	subjects := []*subject{}
	for _, id := range []string{retains, crowded} {
		at, err := g.configured.enter(id, "")
		if err != nil {
			return err
		}
		if err := stamp(filepath.Join(at.workspace.Root, printed), o.output); err != nil {
			return err
		}
		subjects = append(subjects, readBack(g.configured, at, o.output))
	}
	s := section{
		title: fmt.Sprintf("cat of %s, read to its end", bytes(o.output)), n: o.cold, block: 1, gap: gap,
		subjects: o.chosen(piped(g.configured.place, o.output), subjects...),
	}
	return s.show(ctx, r)
}

// printed is the file that is printed, in the root of each workspace.
const printed = "printed"

// stamp writes a file in which every eight bytes say where they are.
func stamp(file string, size int64) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	var word [8]byte
	for at := int64(0); at < size; at += 8 {
		binary.LittleEndian.PutUint64(word[:], uint64(at))
		w.Write(word[:min(8, size-at)])
	}
	return errors.Join(w.Flush(), f.Close())
}

// stamped wants the first and the last whole word of a chunk to be what they say.
func stamped(chunk []byte, from int64) error {
	first, last := (from+7)&^7, (from+int64(len(chunk)))&^7-8
	for _, at := range []int64{first, last} {
		if at < from || first > last {
			continue
		}
		if got := binary.LittleEndian.Uint64(chunk[at-from:]); got != uint64(at) {
			return fmt.Errorf("the output at %d is what was printed at %d", at, got)
		}
	}
	return nil
}

const received, lost, reads = "received", "lost", "reads"

// piped is the baseline: the same chunks, from a pipe.
func piped(at place, size int64) *subject {
	sample := func(ctx context.Context, w *stopwatch) error {
		cmd := exec.CommandContext(ctx, "cat", filepath.Join(at.workspace.Root, printed))
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		chunk, sum := make([]byte, wire.MaxChunk), int64(0)
		w.start()
		if err := cmd.Start(); err != nil {
			return err
		}
		for err == nil {
			var n int
			n, err = out.Read(chunk)
			if wrong := stamped(chunk[:n], sum); wrong != nil {
				return wrong
			}
			sum += int64(n)
		}
		if err := cmd.Wait(); err != nil {
			return err
		}
		w.lap("started and read")
		w.note(received, float64(sum))
		if err != io.EOF || sum != size {
			return fmt.Errorf("%d bytes of %d: %w", sum, size, err)
		}
		return nil
	}
	return &subject{name: "Go os/exec, from its pipe (the baseline)", sample: sample, remark: speed}
}

// readBack has a runner for each sample, which has run a command there already: one
// runner would keep the output of all samples.
func readBack(g *ground, at place, size int64) *subject {
	sample := func(ctx context.Context, w *stopwatch) error {
		r, err := g.startRunner(ctx)
		if err != nil {
			return err
		}
		defer r.close()
		if err := r.run(ctx, &stopwatch{}, at); err != nil {
			return err
		}
		time.Sleep(gap)
		return r.readBack(ctx, w, at, size)
	}
	name := fmt.Sprintf("read back at the runner, which retains %s", bytes(at.workspace.Limits.Output))
	return &subject{name: name, sample: sample, remark: speed}
}

// readBack reads by cursor, each time from where the last answer ended.
func (r *runnerSide) readBack(ctx context.Context, w *stopwatch, at place, size int64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, end := r.request(at, "cat", printed)
	w.start()
	if _, err := r.child.Client.Exec(ctx, request, nil); err != nil {
		return err
	}
	read := runner.ReadRequest{ProcessID: request.ProcessID, MaxBytes: wire.MaxChunk, Wait: 20 * time.Second}
	sum, gone, asked := int64(0), int64(0), 0
	for eof := false; !eof; {
		got, err := r.child.Client.Read(ctx, read)
		if err != nil {
			return err
		}
		asked++
		if err := stamped(got.Chunk, read.Cursor+got.Lost); err != nil {
			return err
		}
		sum, gone, read.Cursor, eof = sum+int64(len(got.Chunk)), gone+got.Lost, got.Cursor, got.EOF
	}
	if err := await(ctx, end); err != nil {
		return err
	}
	w.lap("started and read")
	w.note(received, float64(sum))
	w.note(lost, float64(gone))
	w.note(reads, float64(asked))
	if sum+gone != size {
		return fmt.Errorf("%d bytes read and %d lost, of %d", sum, gone, size)
	}
	return nil
}

// speed says what was read a second, and what was lost.
func speed(t *taken) string {
	whole := quantile(t.whole, 0.5).Seconds()
	got := quantile(t.notes[received], 0.5)
	said := fmt.Sprintf("received %.0f MiB/s", got/whole/(1<<20))
	if gone := t.notes[lost]; gone != nil {
		most := quantile(gone, 1)
		half := quantile(gone, 0.5)
		said += fmt.Sprintf(" in %.0f reads; lost, and counted: %.1f%%, at most %.0f bytes", quantile(t.notes[reads], 0.5), 100*half/(half+got), most)
	}
	return said
}

func bytes(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
