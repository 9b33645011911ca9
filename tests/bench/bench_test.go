package main

import (
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
	o := options{n: 3, cold: 1, bin: strings.TrimSuffix(program, "/codespace")}
	if err := bench(&seen, o); err != nil {
		t.Fatalf("%v\n%s", err, seen.String())
	}
	// How often each begins a line; of the baseline and of bwrap, one a table.
	for row, want := range map[string]int{
		"Linux ":                    1,
		"load at the end":           1,
		"Go os/exec (the baseline)": 3,
		"exec_command to exit seen, at the runner":     2,
		"exec_command, read_process, process_status":   2,
		"a cell made, launched and put away, at the":   2,
		"exec_command to exit seen, at a new runner":   1,
		"a cell made, launched and put away, at a new": 1,
		"    sandbox: plan sent to receipt":            1,
		"codespace run, from nothing":                  1,
		"bwrap --unshare-all":                          3,
		"    exec: asked for to started":               2,
		"    read_process: end of output":              1,
		"    cell: asked for to locked down":           2,
		"    launch: sent to started":                  2,
		"    started to exited":                        2,
		"    put away: descriptors closed, cgroup":     2,
	} {
		if got := strings.Count(seen.String(), "\n"+row); got != want {
			t.Errorf("%d rows begin with %q, want %d", got, row, want)
		}
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
