package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"codespace/tests/need"
)

// The times say nothing here. That every row is measured does.
func TestEveryRowIsMeasured(t *testing.T) {
	program := need.Binary(t, "codespace")
	need.Binary(t, "codespace-runner")
	need.Binary(t, "codespace-helper")
	need.UserNamespaces(t)
	var seen strings.Builder
	o := options{
		n: 2, cold: 1, block: 2, sustain: 100 * time.Millisecond, slice: 50 * time.Millisecond, output: 3 << 20, files: 1500, patched: 20,
		bin: strings.TrimSuffix(program, "/codespace"),
	}
	if err := bench(&seen, o); err != nil {
		t.Fatalf("%v\n%s", err, seen.String())
	}
	// How often each begins a line; of the baseline and of bwrap, one a table.
	for row, want := range map[string]int{
		"Linux ":                    1,
		"load at the end":           1,
		"Go os/exec (the baseline)": 4,
		"exec_command to exit seen, at the runner":     3,
		"exec_command and a waiting read_process":      2,
		"the same, cold: its sandbox stands":           1,
		"    found a prepared cell: ":                  4,
		"a cell made, launched and put away, at the":   2,
		"exec_command to exit seen, at a new runner":   1,
		"    sandbox: plan sent to receipt":            1,
		"codespace run, from nothing":                  1,
		"bwrap --unshare-all":                          3,
		"    exec: asked for to started":               3,
		"    read_process: end of output":              1,
		"    cell: asked for to locked down":           2,
		"    started to exited":                        3,
		"    put away: descriptors closed, cgroup":     2,
		"a prepared cell launched, at the helper":      1,
		"a ping, at the runner":                        1,
		"    asked to launch: request read":            1,
		"    ended to told: event sent":                1,
		"1 at once: ":                                  3,
		"8 at once: exec_command to exit seen, at the": 1,
		"cat of 3 MiB":                                 1,
		"read back at the runner, which retains 3 MiB": 1,
		"read back at the runner, which retains 1 MiB": 1,
		"a prepared cell: its PID 1":                   1,
		"codespace-runner ":                            1,
		"find at the runner, page by page":             1,
		"os.ReadFile (the baseline)":                   1,
		"read at the runner, with the hash of each":    1,
		"write, fsync, rename, fsync of the directory": 2,
		"apply_patch, over MCP (stdio)":                2,
	} {
		if got := strings.Count(seen.String(), "\n"+row); got != want {
			t.Errorf("%d rows begin with %q, want %d", got, row, want)
		}
	}
	_, cold, _ := strings.Cut(seen.String(), "\nthe same, cold: ")
	if !strings.Contains(strings.Join(strings.SplitAfterN(cold, "\n", 3)[:2], ""), "found a prepared cell: 0 of 2\n") {
		t.Error("cold commands found prepared cells")
	}
	if t.Failed() {
		t.Log(seen.String())
	}
}

func TestQuantile(t *testing.T) {
	values := []time.Duration{5, 1, 4, 2, 3}
	for q, want := range map[float64]time.Duration{0: 1, 0.2: 1, 0.5: 3, 0.95: 5, 1: 5} {
		if got := quantile(values, q); got != want {
			t.Errorf("%v: got %d, want %d", q, got, want)
		}
	}
	if !slices.Equal(values, []time.Duration{5, 1, 4, 2, 3}) {
		t.Error("the values were put in order where they are")
	}
}

func TestStampedOutput(t *testing.T) {
	file := t.TempDir() + "/printed"
	if err := stamp(file, 100); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil || len(whole) != 100 {
		t.Fatalf("%d bytes, %v", len(whole), err)
	}
	for from := range whole {
		for to := from; to <= len(whole); to++ {
			if err := stamped(whole[from:to], int64(from)); err != nil {
				t.Fatalf("%d to %d: %v", from, to, err)
			}
		}
	}
	if stamped(whole[16:40], 8) == nil || stamped(append(whole[:16:16], whole[24:40]...), 0) == nil {
		t.Error("output that is not where it was printed passes")
	}
}

func TestATableIsMarkdown(t *testing.T) {
	var seen strings.Builder
	r := report{out: &seen, markdown: true}
	r.heading("a title", columns...)
	r.row("    a row", "1", "2 ms", "3 ms", "1.00x")
	want := "\n| a title | n | median | p95 | ratio |\n|---|--:|--:|--:|--:|\n| &emsp;&emsp;a row | 1 | 2 ms | 3 ms | 1.00x |\n"
	if seen.String() != want {
		t.Errorf("got %q, want %q", seen.String(), want)
	}
}
