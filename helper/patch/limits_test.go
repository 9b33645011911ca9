package patch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"codespace/runner/patching"
)

// adds is a patch of n new files, each in a directory of its own.
func adds(n int) []byte {
	var b strings.Builder
	b.WriteString("*** Begin Patch\n")
	for i := range n {
		fmt.Fprintf(&b, "*** Add File: d%d/f\n+x\n", i)
	}
	return append([]byte(b.String()), "*** End Patch"...)
}

func (h *Helper) code(text []byte) string {
	_, err := h.planned(context.Background(), text, nil)
	var f *patching.Fault
	if err == nil {
		return ""
	}
	if !errors.As(err, &f) {
		return err.Error()
	}
	return f.Code
}

// Each limit of a plan holds what it says, and not one more.
func TestLimitsOfAPlan(t *testing.T) {
	r := newRig(t, t.TempDir())
	h := r.helper()
	defer h.end()
	h.directories, h.limits.Files = 5, 7
	for n, want := range map[int]string{5: "", 6: "INVALID_PATCH"} {
		if got := h.code(adds(n)); got != want {
			t.Errorf("%d directories: %q, want %q", n, got, want)
		}
	}
	h.directories = 100
	for n, want := range map[int]string{7: "", 8: "INVALID_PATCH"} {
		if got := h.code(adds(n)); got != want {
			t.Errorf("%d files: %q, want %q", n, got, want)
		}
	}
	h.limits.FileBytes = 2 // "x" and its newline
	if got := h.code(adds(1)); got != "" {
		t.Errorf("a file of the largest size: %q", got)
	}
	h.limits.FileBytes = 1
	if got := h.code(adds(1)); got != "FILE_TOO_LARGE" {
		t.Errorf("a file of one byte more: %q", got)
	}
}

func TestLongestRecordOfAPlan(t *testing.T) {
	long := strings.Repeat("x", (maxPlanBytes-400)/2)
	p := plan{Planned: patching.Planned{Edits: []patching.Edit{{Path: long}}}}
	if err := p.bounded(10); err != nil {
		t.Errorf("the longest record: %.200s", err)
	}
	p.Edits[0].Path += "x"
	if err := p.bounded(10); err == nil {
		t.Error("a longer record is made")
	}
}

// A directory that somebody made after the plan is not the patch's to remove.
func TestDirectoryOfSomebodyElseStays(t *testing.T) {
	r := newRig(t, t.TempDir())
	r.put("a", former)
	h := r.helper()
	defer h.end()
	p, err := h.planned(context.Background(), []byte("*** Begin Patch\n*** Add File: theirs/ours/f\n+x\n*** Delete File: a\n*** End Patch"), nil)
	must(t, err)
	must(t, os.Mkdir(r.at("theirs"), 0o755))
	must(t, os.WriteFile(r.at("a"), []byte(other), 0o644))
	o, err := h.apply(context.Background(), p)
	must(t, err)
	if d := differs(r.tree(), map[string]string{"theirs": "d---------", "a": fmt.Sprintf("%q", other)}); o.Status != patching.RolledBack || d != "" {
		t.Errorf("%+v: %s", o, d)
	}
}
