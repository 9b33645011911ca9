package v4a_test

import (
	"errors"
	"strings"
	"testing"

	"codespace/openat2fs/v4a"
)

var seeds = []string{
	"",
	"*** Begin Patch\n*** End Patch",
	around("*** Add File: a/b\n+x\n+\n*** Delete File: c\n"),
	update("@@ a\n@@ b\n c\n-d\n+e\n*** End of File\n\n@@\n+f\n"),
	update("*** Move to: g\n\n a\n\n-b\r\n+\xff\n"),
	"<<'EOF'\n" + around("*** Add File: a\n") + "EOF\n",
	around("*** Environment ID: x\n"),
	update("@@foo\n"),
}

// FuzzParse reads any bytes: a patch within the limits, or a whole error. It
// takes memory for lines and paths, not for their product.
func FuzzParse(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var patch v4a.Patch
		var err error
		if got, most := allocated(func() { patch, err = v4a.Parse(text) }), uint64(1<<20+400*len(text)); got > most {
			t.Errorf("%d bytes allocated for %d", got, len(text))
		}
		lines := 1 + strings.Count(string(text), "\n")
		if err != nil {
			whole(t, err, lines)
			return
		}
		if len(patch.Hunks) == 0 {
			t.Error("a patch of nothing")
		}
		for _, h := range patch.Hunks {
			inside(t, h.Path)
			if h.Kind == v4a.Move {
				inside(t, h.MoveTo)
			}
			if h.Line < 2 || h.Line > lines {
				t.Errorf("line %d of %d", h.Line, lines)
			}
		}
	})
}

// whole wants an error that says where, what, what instead and what now.
func whole(t *testing.T, err error, lines int) {
	t.Helper()
	var e *v4a.Error
	switch {
	case !errors.As(err, &e):
		t.Errorf("not typed: %v", err)
	case e.Code == "" || e.What == "" || e.Expected == "" || e.Next == "" || e.Line < 1 || e.Line > lines:
		t.Errorf("not whole: %#v", e)
	case len(e.Error()) > 8000:
		t.Errorf("%d bytes long", len(e.Error()))
	}
}

func inside(t *testing.T, path string) {
	t.Helper()
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." || name == ".." || len(name) > v4a.MaxNameBytes || strings.ContainsAny(name, "\x00\n") {
			t.Errorf("path %q", path)
		}
	}
	if len(path) > v4a.MaxPathBytes || strings.Count(path, "/") >= v4a.MaxPathDepth {
		t.Errorf("path %q", path)
	}
}

// FuzzPlan applies any patch to any file: the work and the result are no more than
// the input warrants, and the same input gives the same answer.
func FuzzPlan(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed), []byte("a\nb\r\nc\nd"))
	}
	f.Add([]byte(update("@@\n-a\n+b\n")), []byte("\ufeffa\r"))
	f.Fuzz(func(t *testing.T, text, before []byte) {
		patch, err := v4a.Parse(text)
		if err != nil {
			return
		}
		source := files("f", string(before), "c", string(before))
		changes, steps, err := v4a.Counted(patch, source)
		if limit := int64(200 * (len(text) + len(before) + 10) * len(patch.Hunks)); steps > limit {
			t.Errorf("%d steps for %d bytes", steps, len(text)+len(before))
		}
		again, second := v4a.Plan(patch, source)
		if err != nil {
			whole(t, err, 1+strings.Count(string(text), "\n"))
			if second == nil || second.Error() != err.Error() {
				t.Errorf("first %v, then %v", err, second)
			}
			return
		}
		for i, c := range changes {
			if string(c.After) != string(again[i].After) {
				t.Errorf("first %q, then %q", c.After, again[i].After)
			}
			if len(c.After) > len(before)+2*len(text) {
				t.Errorf("%d bytes out of %d and a patch of %d", len(c.After), len(before), len(text))
			}
		}
	})
}
