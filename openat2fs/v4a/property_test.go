package v4a_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"codespace/openat2fs/v4a"
)

// piece is one line of a generated file.
type piece struct{ text, ending string }

// script is a generated file and what is done to it.
type script struct {
	r       *rand.Rand
	mark    string
	old     []piece
	uniform bool // one kind of ending, and a final one: then a patch can be turned round
	serial  int
}

var tails = []string{"", " ", "\t", "  two", "\u2014", "\xff", "\xfe \x80", "\u00a0", "\x00", " +-@@", "\ufeff"}

// text is a line that no other line equals.
func (s *script) text() string {
	s.serial++
	return fmt.Sprintf("%s%d.%s", []string{"", " ", "\t", "+", "-", "@@ ", "*** "}[s.r.IntN(7)], s.serial, tails[s.r.IntN(len(tails))])
}

func generate(seed uint64) *script {
	s := &script{r: rand.New(rand.NewPCG(seed, 2))}
	endings := [][]string{{"\n"}, {"\r\n"}, {"\r"}, {"\n", "\r\n"}}[s.r.IntN(4)]
	if s.r.IntN(4) == 0 {
		s.mark = "\ufeff"
	}
	for range s.r.IntN(30) {
		s.old = append(s.old, piece{s.text(), endings[s.r.IntN(len(endings))]})
	}
	s.uniform = len(endings) == 1 && (len(s.old) > 0 || endings[0] == "\n")
	if last := len(s.old) - 1; last >= 0 && s.r.IntN(4) == 0 {
		s.old[last].ending = ""
		s.uniform = false
	}
	return s
}

func (s *script) before() string {
	text := s.mark
	for _, line := range s.old {
		text += line.text + line.ending
	}
	return text
}

// ending is what line i ends in or should.
func (s *script) ending(i int) string {
	for _, ending := range []string{s.old[i].ending, s.old[0].ending} {
		if ending != "" {
			return ending
		}
	}
	return "\n"
}

// change makes edits and returns them as chunks, with the bytes they should give.
func (s *script) change() (chunks []spec, after string) {
	after = s.mark
	next := 0
	for next < len(s.old) {
		from := next + s.r.IntN(8)
		if from >= len(s.old) {
			break
		}
		c := spec{}
		if i := next + s.r.IntN(from-next+1); i < from && s.r.IntN(2) == 0 {
			if text := s.old[i].text; strings.TrimRight(text, " \t\u00a0") == text {
				c.anchors = []string{text}
			}
		}
		after += s.kept(next, from)
		to := min(len(s.old), from+1+s.r.IntN(4))
		for i := from; i < to; i++ {
			after += s.inserted(&c, i)
			if i > from && s.r.IntN(2) == 0 {
				c.lines = append(c.lines, "-"+s.old[i].text)
				continue
			}
			c.lines = append(c.lines, " "+s.old[i].text)
			after += s.kept(i, i+1)
		}
		after += s.inserted(&c, to)
		c.eof = to == len(s.old) && s.r.IntN(2) == 0
		chunks = append(chunks, c)
		next = to
	}
	return chunks, after + s.kept(next, len(s.old))
}

func (s *script) kept(from, to int) string {
	text := ""
	for i := from; i < to; i++ {
		text += s.old[i].text + s.ending(i)
	}
	return text
}

// inserted adds new lines in front of line i.
func (s *script) inserted(c *spec, i int) string {
	text := ""
	for range s.r.IntN(3) {
		line := s.text()
		c.lines = append(c.lines, "+"+line)
		text += line + s.ending(max(i-1, 0))
	}
	return text
}

// reversed turns a patch round. Anchors go: what they named may have been changed.
func reversed(chunks []spec) string {
	text := ""
	for _, c := range chunks {
		back := spec{eof: c.eof}
		for _, line := range c.lines {
			back.lines = append(back.lines, map[byte]string{' ': " ", '+': "-", '-': "+"}[line[0]]+line[1:])
		}
		text += back.String()
	}
	return update(text)
}

func TestGeneratedEditsGiveTheExpectedBytes(t *testing.T) {
	turned := 0
	for seed := range uint64(10000) {
		s := generate(seed)
		chunks, after := s.change()
		if len(chunks) == 0 {
			continue
		}
		text := ""
		for _, c := range chunks {
			text += c.String()
		}
		got, err := files("f", s.before()).patched(update(text))
		if err != nil || got["f"] != after {
			t.Fatalf("seed %d: %q on %q: want %q, got %q, %v", seed, text, s.before(), after, got["f"], err)
		}
		if !s.uniform {
			continue
		}
		turned++
		got, err = files("f", after).patched(reversed(chunks))
		if err != nil || got["f"] != s.before() {
			t.Fatalf("seed %d: %q on %q: want %q back, got %q, %v", seed, reversed(chunks), after, s.before(), got["f"], err)
		}
	}
	if turned < 2500 {
		t.Errorf("only %d patches were turned round", turned)
	}
}

// A plan may not change the bytes it was given, nor hand them out twice to write to.
func TestPlanLeavesItsInputAlone(t *testing.T) {
	patch := []byte(update("@@\n a\n-b\n+c\n*** Update File: g\n*** Move to: h\n"))
	was := string(patch)
	parsed, err := v4a.Parse(patch)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		changes, err := v4a.Plan(parsed, files("f", "a\nb", "g", "x"))
		if err != nil || string(changes[0].Before) != "a\nb" || string(changes[0].After) != "a\nc\n" || string(changes[1].After) != "x" {
			t.Errorf("got %+v, %v", changes, err)
		}
	}
	if string(patch) != was {
		t.Errorf("the patch became %q", patch)
	}
}
