package v4a_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"codespace/openat2fs/v4a"
)

// spec is a chunk as a test makes it: lines with their signs, and whether they
// end with the file.
type spec struct {
	anchors []string
	lines   []string
	eof     bool
}

func (s spec) String() string {
	text := "@@\n"
	for _, anchor := range s.anchors {
		text += "@@ " + anchor + "\n"
	}
	text += strings.Join(s.lines, "\n") + "\n"
	if s.eof {
		text += "*** End of File\n"
	}
	return text
}

// slowKey compares lines as the format says, one replacement after the other.
func slowKey(pass int, line string) string {
	if !utf8.ValidString(line) {
		return line
	}
	switch pass {
	case 1:
		return strings.TrimRight(line, " \t\v\f\r\u0085\u00a0\u2003\u3000")
	case 2, 3:
		line = strings.Trim(line, " \t\v\f\r\u0085\u00a0\u2003\u3000")
	}
	if pass == 3 {
		for _, r := range "\u2010\u2011\u2012\u2013\u2014\u2015\u2212" {
			line = strings.ReplaceAll(line, string(r), "-")
		}
		for _, r := range "\u2018\u2019\u201a\u201b" {
			line = strings.ReplaceAll(line, string(r), "'")
		}
		for _, r := range "\u201c\u201d\u201e\u201f" {
			line = strings.ReplaceAll(line, string(r), `"`)
		}
		for _, r := range "\u00a0\u2002\u2003\u2009\u200a\u202f\u205f\u3000" {
			line = strings.ReplaceAll(line, string(r), " ")
		}
	}
	return line
}

// slowFind tries every line in every pass.
func slowFind(file, sought []string, from, to int) []int {
	for pass := range 4 {
		var places []int
		for at := from; at <= to && at+len(sought) <= len(file); at++ {
			same := true
			for j, line := range sought {
				same = same && slowKey(pass, file[at+j]) == slowKey(pass, line)
			}
			if same {
				places = append(places, at)
			}
		}
		if len(places) > 0 {
			return places
		}
	}
	return nil
}

// slowApply is the format, plainly, on a file of LF lines. Its errors begin with
// the code, the number of the chunk, and for ambiguity the places.
func slowApply(file []string, chunks []spec) ([]string, string) {
	type change struct {
		at    int
		lines []string
	}
	var changes, last []change
	cursor := 0
	for i, c := range chunks {
		for _, anchor := range c.anchors {
			places := slowFind(file, []string{anchor}, cursor, len(file))
			if places == nil {
				return nil, fmt.Sprint(v4a.InvalidPatch, i+1)
			}
			cursor = places[0] + 1
		}
		lines := c.lines
		for {
			var old []string
			for _, line := range lines {
				if line == "" || line[0] != '+' {
					old = append(old, line[min(1, len(line)):])
				}
			}
			if len(old) == 0 && (c.eof || len(c.anchors) == 0) {
				last = append(last, change{len(file), lines})
				break
			}
			if len(old) == 0 {
				changes = append(changes, change{cursor, lines})
				break
			}
			from := cursor
			if c.eof {
				from = max(from, len(file)-len(old))
			}
			places := slowFind(file, old, from, len(file))
			if len(places) > 1 && len(c.anchors) == 0 {
				return nil, fmt.Sprint(v4a.Ambiguous, i+1, places)
			}
			if len(places) > 0 {
				changes = append(changes, change{places[0], lines})
				cursor = places[0] + len(old)
				break
			}
			if old[len(old)-1] != "" || len(lines) != len(c.lines) {
				return nil, fmt.Sprint(v4a.InvalidPatch, i+1)
			}
			// The generator lets an empty last line be the last of its chunk only.
			lines = lines[:len(lines)-1]
		}
	}
	var out []string
	next := 0
	for _, c := range append(changes, last...) {
		out = append(out, file[next:c.at]...)
		next = c.at
		for _, line := range c.lines {
			switch {
			case line != "" && line[0] == '+':
				out = append(out, line[1:])
			case line != "" && line[0] == '-':
				next++
			default:
				out = append(out, file[next])
				next++
			}
		}
	}
	return append(out, file[next:]...), ""
}

// few are lines that are equal in some passes, so that random ones often match.
var few = []string{"a", "b", " a", "a ", "\ta", "", " ", "-", "\u2014", "a\u00a0b", "a b", "\xffa", "\xffa ", "'", "\u2019"}

func randomSpec(r *rand.Rand, file []string) spec {
	s := spec{eof: r.IntN(8) == 0}
	line := func() string { return few[r.IntN(len(few))] }
	for r.IntN(3) == 0 {
		s.anchors = append(s.anchors, strings.TrimRight(line(), " \u00a0"))
	}
	s.anchors = slices.DeleteFunc(s.anchors, func(text string) bool { return text == "" })
	from := r.IntN(len(file) + 1)
	for range 1 + r.IntN(4) {
		text := line()
		if from < len(file) && r.IntN(6) > 0 {
			text = file[from]
			from++
		}
		if r.IntN(8) == 0 {
			text = strings.TrimSpace(text)
		}
		s.lines = append(s.lines, string(" +-"[r.IntN(3)])+text)
	}
	if r.IntN(4) == 0 {
		s.lines = append(s.lines, "")
	}
	// An empty old line with new ones behind it is in the table of edits.
	for old := len(s.lines) - 1; old >= 0; old-- {
		if s.lines[old] == " " || s.lines[old] == "-" {
			s.lines = s.lines[:old+1]
		}
		if s.lines[old] == "" || s.lines[old][0] != '+' {
			break
		}
	}
	return s
}

func TestFastMatchingAgreesWithAPlainOne(t *testing.T) {
	applied, ambiguous, missing := 0, 0, 0
	for seed := range uint64(40000) {
		r := rand.New(rand.NewPCG(seed, 1))
		words := 1 + r.IntN(len(few))
		var file []string
		for range r.IntN(12) {
			file = append(file, few[r.IntN(words)])
		}
		var chunks []spec
		text := ""
		for range 1 + r.IntN(3) {
			c := randomSpec(r, file)
			if chunks == nil && !slices.ContainsFunc(c.lines, func(line string) bool { return line != "" }) {
				continue // blank lines before the first chunk
			}
			chunks = append(chunks, c)
			text += c.String()
		}
		if chunks == nil {
			continue
		}
		before := ""
		if len(file) > 0 {
			before = strings.Join(file, "\n") + "\n"
		}
		want, fault := slowApply(file, chunks)
		got, err := files("f", before).patched(update(text))
		var e *v4a.Error
		switch {
		case errors.As(err, &e) && e.Code == v4a.Ambiguous:
			ambiguous++
			places := make([]int, len(e.Matches))
			for i, line := range e.Matches {
				places[i] = line - 1
			}
			if fault != fmt.Sprint(e.Code, e.Chunk, places) {
				t.Fatalf("seed %d: %q on %q: want %q, got %v", seed, text, before, fault, err)
			}
		case err != nil:
			missing++
			if e == nil || fault != fmt.Sprint(e.Code, e.Chunk) {
				t.Fatalf("seed %d: %q on %q: want %q, got %v", seed, text, before, fault, err)
			}
		default:
			applied++
			after := strings.Join(want, "\n")
			if len(want) > 0 {
				after += "\n"
			}
			if fault != "" || got["f"] != after {
				t.Fatalf("seed %d: %q on %q: want %q %s, got %q", seed, text, before, after, fault, got["f"])
			}
		}
	}
	t.Logf("%d applied, %d ambiguous, %d not found", applied, ambiguous, missing)
	if applied < 4000 || ambiguous < 2000 || missing < 5000 {
		t.Error("the random patches are too much alike")
	}
}

// A line with one LF at its end is what the plain implementation knows.
func TestFewLinesAreLines(t *testing.T) {
	for _, line := range few {
		if bytes.ContainsAny([]byte(line), "\r\n") {
			t.Errorf("%q", line)
		}
	}
}
