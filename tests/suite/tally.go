package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// tally counts the events of go test -json. What counts is a test or subtest
// without subtests, and a package that fails beside its tests.
type tally struct {
	counts

	out     io.Writer
	output  map[string]*strings.Builder // by package and test, until it has ended
	parents map[string]bool             // tests with subtests
	of      map[string]*counts          // by package
}

type counts struct{ passed, failed, skipped int }

type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, output: map[string]*strings.Builder{}, parents: map[string]bool{}, of: map[string]*counts{}}
}

// line takes one line; what is no event is somebody's message and is passed on.
func (t *tally) line(line string) {
	var e event
	if err := json.Unmarshal([]byte(line), &e); err != nil || e.Action == "" {
		fmt.Fprint(t.out, line)
		return
	}
	if t.of[e.Package] == nil {
		t.of[e.Package] = &counts{}
	}
	switch e.Action {
	case "build-output":
		fmt.Fprint(t.out, e.Output)
	case "output":
		t.keep(e)
	case "run":
		if i := strings.LastIndexByte(e.Test, '/'); i >= 0 {
			t.parents[e.Package+" "+e.Test[:i]] = true
		}
	case "pass", "fail", "skip":
		t.ended(e)
	}
}

func (t *tally) keep(e event) {
	key := e.Package + " " + e.Test
	if t.output[key] == nil {
		t.output[key] = &strings.Builder{}
	}
	t.output[key].WriteString(e.Output)
}

func (t *tally) ended(e event) {
	key := e.Package + " " + e.Test
	said := ""
	if b := t.output[key]; b != nil {
		said = b.String()
		delete(t.output, key)
	}
	if e.Test == "" {
		t.endedPackage(e, said)
		return
	}
	if e.Action == "fail" {
		fmt.Fprintf(t.out, "FAIL %s\n%s", key, said)
	}
	if t.parents[key] {
		return
	}
	t.count(e.Action)
	t.of[e.Package].count(e.Action)
	if e.Action == "skip" {
		fmt.Fprintf(t.out, "skip %s: %s\n", key, reason(said))
	}
}

// endedPackage prints one line for a package. One that fails although each test
// counted has passed did so in a parent test, in TestMain, or by dying: then
// what its unfinished tests said is all there is to see.
func (t *tally) endedPackage(e event, said string) {
	c := t.of[e.Package]
	if e.Action == "fail" && c.failed == 0 {
		fmt.Fprintf(t.out, "FAIL %s: the package itself\n%s", e.Package, said)
		t.unfinished(e.Package)
		t.failed++
		c.failed++
	}
	if *c != (counts{}) {
		fmt.Fprintf(t.out, "%-4s %s (%.1fs): %d passed, %d failed, %d skipped\n", e.Action, e.Package, e.Elapsed, c.passed, c.failed, c.skipped)
	}
}

func (t *tally) unfinished(pkg string) {
	for key, said := range t.output {
		if strings.HasPrefix(key, pkg+" ") {
			fmt.Fprint(t.out, said)
			delete(t.output, key)
		}
	}
}

func (c *counts) count(action string) {
	switch action {
	case "pass":
		c.passed++
	case "fail":
		c.failed++
	case "skip":
		c.skipped++
	}
}

// reason is what a skipped test said, without the frame of go test.
func reason(said string) string {
	for line := range strings.Lines(said) {
		if _, why, ok := strings.Cut(line, ".go:"); ok {
			_, why, _ = strings.Cut(why, ": ")
			return strings.TrimSpace(why)
		}
	}
	return "it does not say why"
}
