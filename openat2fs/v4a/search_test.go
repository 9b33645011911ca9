package v4a_test

import (
	"slices"
	"strings"
	"testing"

	"codespace/openat2fs/v4a"
)

func TestAmbiguousMatch(t *testing.T) {
	const before = "a\n1\na\n2\na\n 1\n"
	for _, c := range []struct {
		name, before, chunks string
		line, chunk          int
		matches              []int
	}{
		{"without @@", before, "-a\n+b\n", 3, 1, []int{1, 3, 5}},
		{"with a bare @@", before, "@@\n-a\n+b\n", 3, 1, []int{1, 3, 5}},
		{"behind another chunk", before, "@@ a\n-1\n+3\n@@\n-a\n+b\n", 6, 2, []int{3, 5}},
		{"in a looser pass", before, "@@\n-a \n+b\n", 3, 1, []int{1, 3, 5}},
		{"overlapping", "x\nx\nx\n", "@@\n-x\n-x\n", 3, 1, []int{1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := fails(t, files("f", c.before).refused(t, update(c.chunks)), v4a.Ambiguous, c.line, "context")
			if !slices.Equal(e.Matches, c.matches) || e.Total != len(c.matches) || e.Chunk != c.chunk || e.Path != "f" {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestPlacesAboveTheChunkBeforeDoNotMakeAmbiguous(t *testing.T) {
	files("f", "a\nx\na\ny\na\n").becomes(t, update("@@\n y\n@@\n-a\n+b\n"), files("f", "a\nx\na\ny\nb\n"))
}

func TestAmbiguityOfManyPlacesIsCountedAndListedInPart(t *testing.T) {
	e := fails(t, files("f", strings.Repeat("a\n", 1000)).refused(t, update("@@\n-a\n+b\n")), v4a.Ambiguous, 3, "1000 places", "and 980 more")
	if len(e.Matches) != 20 || e.Matches[19] != 20 || e.Total != 1000 {
		t.Errorf("got %+v", e)
	}
}

func TestShorterChunkMustBeUniqueToo(t *testing.T) {
	fails(t, files("f", "a\nb\na\nb\n").refused(t, update("@@\n-a\n\n")), v4a.Ambiguous, 3)
}

func TestMissingContext(t *testing.T) {
	const before = "one\ntwo\nthree\nfour\nfive\n"
	for _, c := range []struct {
		name, before, chunks string
		line, chunk          int
		nearest, differs     int
		word                 string
	}{
		{"one line differs", before, "@@\n two\n-thre\n+3\n four\n", 3, 1, 2, 3, `line 3 is "three" and not "thre"`},
		{"the first line differs", before, "@@\n TWO\n-three\n four\n", 3, 1, 2, 2, `line 2 is "two" and not "TWO"`},
		{"a single line differs", before, "@@\n-threee\n+3\n", 3, 1, 3, 3, `line 3 is "three" and not "threee"`},
		{"the file ends", before, "@@\n four\n five\n-six\n", 3, 1, 4, 6, `the file ends before "six"`},
		{"nothing is alike", before, "@@\n-zzzz\n", 3, 1, 0, 0, "nothing in its 5 lines"},
		{"an empty file", "", "@@\n-a\n", 3, 1, 0, 0, "nothing in its 0 lines"},
		{"chunks out of order", before, "@@\n-four\n+4\n@@\n-two\n+2\n", 6, 2, 2, 0, "order of the file"},
		{"overlapping chunks", before, "@@\n two\n-three\n@@\n three\n-four\n", 6, 2, 3, 0, "before the search begins"},
		{"an anchor's line in its chunk", before, "@@ two\n two\n-three\n", 3, 1, 2, 0, "do not repeat an anchor's line"},
		{"not at the end of the file", before, "@@\n-four\n+4\n*** End of File\n", 3, 1, 5, 5, `line 5 is "five" and not "four"`},
		{"longer than the file", before, "@@\n one\n two\n three\n four\n five\n-six\n*** End of File\n", 3, 1, 1, 6, "the file ends"},
		{"an anchor that is nowhere", before, "@@ zero\n+x\n", 3, 1, 0, 0, `anchor "zero" is on no line from line 1`},
		{"an anchor that is part of a line", "def f(self):\n1\n", "@@ def f\n-1\n+2\n", 3, 1, 1, 1, `line 1 is "def f(self):"`},
		{"an anchor above", before, "@@\n-two\n@@ one\n+x\n", 5, 2, 1, 1, `line 1 is "one"`},
		{"an anchor of line numbers", before, "@@ -1,2 +1,2 @@\n-one\n+1\n", 3, 1, 0, 0, "never line numbers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := fails(t, files("f", c.before).refused(t, update(c.chunks)), v4a.InvalidPatch, c.line, c.word, `"f"`)
			if e.Chunk != c.chunk || e.Nearest != c.nearest || e.Differs != c.differs || len(e.Sought) == 0 {
				t.Errorf("got %+v", e)
			}
		})
	}
}

// A reply has a cap, and a terminal shows errors.
func TestErrorsAreShortAndPrintable(t *testing.T) {
	long := strings.Repeat("\x1b[31m\xff", 10000)
	for _, patch := range []string{
		long,
		around(long + "\n"),
		around("*** Add File: " + long + "\n"),
		around("*** Add File: /" + long[:4000] + "\n"),
		around("*** Add File: a\n" + long + "\n"),
		update("@@" + long + "\n"),
		update("@@ " + long + "\n+a\n"),
		update("@@\n-x\n-" + long + "\n"),
		update("@@\n" + strings.Repeat("-"+long[:600]+"\n", 100)),
		around("*** Add File: a\n") + long,
	} {
		err := files("f", "x\n"+long+"x\n").refused(t, patch)
		if text := err.Error(); len(text) > 8000 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '\ufffd' }) {
			t.Errorf("%d bytes: %.200q", len(text), text)
		}
	}
}

func TestEveryFoldedCharacter(t *testing.T) {
	for plain, folded := range map[string]string{
		"-":  "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
		"'":  "\u2018\u2019\u201a\u201b",
		"\"": "\u201c\u201d\u201e\u201f",
		" ":  "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
	} {
		for _, r := range folded {
			files("f", "a"+string(r)+"b\n").becomes(t, update("@@\n-a"+plain+"b\n+c\n"), files("f", "c\n"))
		}
	}
	for _, r := range "\u2016\u2017\u2020\u2043\u200b\u2060\u2032\u1680\u2001" {
		for _, plain := range "-'\" " {
			err := files("f", "a"+string(r)+"b\n").refused(t, update("@@\n-a"+string(plain)+"b\n+c\n"))
			fails(t, err, v4a.InvalidPatch, 3)
		}
	}
}
