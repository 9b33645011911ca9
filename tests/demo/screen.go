package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// screen is what a person sees, and counts it.
type screen struct {
	out    io.Writer
	colour bool

	well, shown int
	missing     []string // steps left out, and for lack of what
}

const (
	bold  = "1"
	faint = "2"
	red   = "31"
	green = "32"
)

func (s *screen) paint(colour, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// begin and note are printed before anything is done: the doing may take a while.
func (s *screen) begin(title string) {
	s.shown++
	fmt.Fprintf(s.out, "\n%s\n", s.paint(bold, title))
}

// note says what is done.
func (s *screen) note(doing string) { fmt.Fprintf(s.out, "  %s\n", s.paint(faint, doing)) }

// body is what came back, a line each, indented.
func (s *screen) body(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		fmt.Fprintf(s.out, "    %s\n", strings.TrimRight(line, "\r\n"))
	}
}

// end says how it went and whether that is as it should be.
func (s *screen) end(how string, wrong error) {
	if wrong != nil {
		fmt.Fprintf(s.out, "%s %s\n", s.paint(red, "✗"), how)
		s.body("not as promised: " + wrong.Error())
		return
	}
	s.well++
	fmt.Fprintf(s.out, "%s %s\n", s.paint(green, "✓"), how)
}

func (s *screen) leaveOut(title, tool string) {
	s.missing = append(s.missing, fmt.Sprintf("left out: %q, for lack of %s (make setup, as root, installs it)", title, tool))
}

// summary ends the demo.
func (s *screen) summary() error {
	fmt.Fprintln(s.out)
	for _, line := range s.missing {
		fmt.Fprintln(s.out, line)
	}
	fmt.Fprintf(s.out, "demo: %d of %d steps as promised\n", s.well, s.shown)
	if s.well != s.shown {
		return fmt.Errorf("%d steps were not as promised", s.shown-s.well)
	}
	return nil
}

// ending says in a line how a command ended and what it took.
func (st status) ending() string {
	how := map[string]string{
		"exited": "exited", "signaled": "ended by a signal", "timeout": "ended by the time limit",
		"terminated": "terminated", "oom": "ended by the memory limit",
	}[st.Termination]
	if how == "" {
		how = "lost: " + st.Termination
	}
	if st.Code != nil {
		how += fmt.Sprintf(" with code %d", *st.Code)
	}
	if st.Signal != "" {
		how += " (" + st.Signal + ")"
	}
	took := st.Ended.Sub(st.Started).Round(time.Millisecond)
	cpu := time.Duration(st.Usage.CPU) * time.Millisecond
	return fmt.Sprintf("%s after %v; cpu %v, peak memory %.1f MiB", how, took, cpu, float64(st.Usage.PeakMemory)/(1<<20))
}
