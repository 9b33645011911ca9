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

// show measures a section and prints it.
func (s *section) show(ctx context.Context, out io.Writer) error {
	if err := s.measure(ctx); err != nil {
		return err
	}
	s.table(out)
	if s.stages {
		s.breakdown(out)
	}
	return nil
}

// table prints a section: the first subject is the baseline of the others.
func (s *section) table(out io.Writer) {
	base := quantile(s.taken[s.subjects[0]].whole, 0.5)
	fmt.Fprintf(out, "\n%-62s %5s %10s %10s %8s\n", s.title, "n", "median", "p95", "ratio")
	for _, subject := range s.subjects {
		if subject.missing != "" {
			fmt.Fprintf(out, "%-62s %s\n", subject.name, subject.missing)
			continue
		}
		whole := s.taken[subject].whole
		median := quantile(whole, 0.5)
		fmt.Fprintf(out, "%-62s %5d %10s %10s %7.2fx\n", subject.name, len(whole), shown(median), shown(quantile(whole, 0.95)), ratio(median, base))
	}
}

// breakdown prints where the time goes, of subjects that pass several stages.
func (s *section) breakdown(out io.Writer) {
	base := quantile(s.taken[s.subjects[0]].whole, 0.5)
	fmt.Fprintf(out, "\n%-62s %5s %10s %10s %8s\n", "  its stages", "", "median", "p95", "ratio")
	for _, subject := range s.subjects {
		t := s.taken[subject]
		if len(t.stages) < 2 {
			continue
		}
		fmt.Fprintf(out, "  %s\n", subject.name)
		for _, stage := range t.stages {
			times := t.times[stage]
			median := quantile(times, 0.5)
			fmt.Fprintf(out, "    %-58s %5s %10s %10s %7.2fx\n", stage, "", shown(median), shown(quantile(times, 0.95)), ratio(median, base))
		}
	}
}

func shown(d time.Duration) string {
	return fmt.Sprintf("%.3f ms", float64(d)/float64(time.Millisecond))
}

func ratio(d, base time.Duration) float64 { return float64(d) / float64(max(base, 1)) }

// host says on what and when this was measured. A busy machine is named: there
// even ratios are blurred.
func host() string {
	user := "a plain user"
	if os.Geteuid() == 0 {
		user = "root"
	}
	said := fmt.Sprintf("%s, as %s, %s\nLinux %s, %d CPUs (%s), load %s\n", time.Now().UTC().Format("2006-01-02 15:04 UTC"), user, runtime.Version(),
		line("/proc/sys/kernel/osrelease"), runtime.NumCPU(), model(), load())
	var now float64
	if _, err := fmt.Sscan(load(), &now); err == nil && now > float64(runtime.NumCPU())/2 {
		said += "this machine is busy with something else: take the figures for rough\n"
	}
	return said + "the command is " + command + "; ratio is of medians, to os/exec in the same table\n"
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
