package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// report is where tables are printed, for a terminal or for a document.
type report struct {
	out      io.Writer
	markdown bool
}

// heading begins a table.
func (r report) heading(title string, columns ...string) {
	fmt.Fprintln(r.out)
	r.row(title, columns...)
	if r.markdown {
		fmt.Fprintf(r.out, "|---|%s\n", strings.Repeat("--:|", len(columns)))
	}
}

func (r report) row(name string, cells ...string) {
	if r.markdown {
		fmt.Fprintf(r.out, "| %s |", strings.ReplaceAll(name, "  ", "&emsp;"))
		for _, cell := range cells {
			fmt.Fprintf(r.out, " %s |", cell)
		}
		fmt.Fprintln(r.out)
		return
	}
	line := fmt.Sprintf("%-70s", name)
	for i, cell := range cells {
		line += fmt.Sprintf(" %*s", 7+4*min(i, 1), cell)
	}
	fmt.Fprintln(r.out, strings.TrimRight(line, " "))
}

// say prints a line that belongs to no table.
func (r report) say(text string) {
	if r.markdown && text != "" {
		text = "- " + text
	}
	fmt.Fprintln(r.out, text)
}

// show measures a section and prints it.
func (s *section) show(ctx context.Context, r report) error {
	if err := s.measure(ctx); err != nil {
		return err
	}
	s.table(r)
	if s.stages {
		s.breakdown(r)
	}
	return nil
}

var columns = []string{"n", "median", "p95", "ratio"}

// table prints a section: the first subject is the baseline of the others.
func (s *section) table(r report) {
	base := quantile(s.taken[s.subjects[0]].whole, 0.5)
	r.heading(s.title, columns...)
	for _, subject := range s.subjects {
		if subject.missing != "" {
			r.row(subject.name, "-", subject.missing)
			continue
		}
		t := s.taken[subject]
		r.row(subject.name, timesOf(t.whole, base)...)
		if subject.remark != nil {
			r.row("    " + subject.remark(t))
		}
	}
}

// breakdown prints where the time goes, of subjects that pass several stages.
func (s *section) breakdown(r report) {
	base := quantile(s.taken[s.subjects[0]].whole, 0.5)
	r.heading("  its stages", columns...)
	for _, subject := range s.subjects {
		t := s.taken[subject]
		if len(t.stages) < 2 {
			continue
		}
		r.row("  " + subject.name)
		for _, stage := range t.stages {
			r.row("    "+stage, timesOf(t.times[stage], base)...)
		}
	}
}

// timesOf are the cells of a row of times.
func timesOf(times []time.Duration, base time.Duration) []string {
	median := quantile(times, 0.5)
	return []string{fmt.Sprint(len(times)), shown(median), shown(quantile(times, 0.95)), ratio(float64(median), float64(base))}
}

func shown(d time.Duration) string {
	return fmt.Sprintf("%.3f ms", float64(d)/float64(time.Millisecond))
}

func ratio(value, base float64) string {
	if base == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2fx", value/base)
}

// host says on what and when this was measured. A busy machine is named: there
// even ratios are blurred.
func (r report) host() {
	user := "a plain user"
	if os.Geteuid() == 0 {
		user = "root"
	}
	r.say(fmt.Sprintf("%s, as %s, %s", time.Now().UTC().Format("2006-01-02 15:04 UTC"), user, runtime.Version()))
	r.say(fmt.Sprintf("Linux %s, %d CPUs (%s), load %s", line("/proc/sys/kernel/osrelease"), runtime.NumCPU(), model(), load()))
	var now float64
	if _, err := fmt.Sscan(load(), &now); err == nil && now > float64(runtime.NumCPU())/2 {
		r.say("this machine is busy with something else: take the figures for rough")
	}
	r.say("the command is " + command + " where none is named; ratio is of medians, to the first row of the same table")
}

// load is the number of tasks that ran or wanted to, over 1, 5 and 15 minutes.
func load() string {
	words := strings.Fields(line("/proc/loadavg"))
	return strings.Join(words[:min(3, len(words))], " ")
}

// model is the processor's name, as the kernel knows it.
func model() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for entry := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(entry, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// line is what a file of one line says.
func line(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
