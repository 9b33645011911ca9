package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rest is for how long the use of processors is watched.
const rest = time.Second

// memory measures what waits: prepared cells, and the processes that own them.
func memory(ctx context.Context, r report, o options, g *grounds) error {
	side, err := g.embedded.startRunner(ctx)
	if err != nil {
		return err
	}
	defer side.close()
	for range 2 * o.block { // so that as many cells are prepared as ever are
		if err := side.sample(ctx, &stopwatch{}); err != nil {
			return err
		}
		time.Sleep(o.pace)
	}
	time.Sleep(5 * gap)
	parent := parents()
	runner := []int{side.child.PID()}
	helper := childrenOf(parent, runner)
	factory := childrenOf(parent, helper)
	groups := []waiting{
		{name: "a prepared cell: its PID 1", pids: childrenOf(parent, factory)},
		{name: "the sandbox: its PID 1, which makes the cells", pids: factory},
		{name: "codespace-helper", pids: helper},
		{name: "codespace-runner", pids: runner},
	}
	for i := range groups {
		groups[i].begin()
	}
	time.Sleep(rest)
	r.heading(fmt.Sprintf("what waits for the next command, watched for %v", rest), "n", "private", "Pss", "CPU", "ran")
	for _, g := range groups {
		r.row(g.name, g.cells()...)
	}
	return nil
}

// waiting is some processes of a kind.
type waiting struct {
	name   string
	pids   []int
	before [][2]int64
}

func (w *waiting) begin() {
	for _, pid := range w.pids {
		got, _ := scheduled(pid) // what is in the way is in the way later too
		w.before = append(w.before, got)
	}
}

// cells are those of a row: the median of memory, the most of activity.
func (w *waiting) cells() []string {
	var private, pss, cpu, ran []int64
	for i, pid := range w.pids {
		after, err := scheduled(pid)
		own, share, failed := resident(pid)
		if err = errors.Join(err, failed); err != nil {
			return []string{"-", err.Error()}
		}
		private, pss = append(private, own), append(pss, share)
		cpu, ran = append(cpu, after[0]-w.before[i][0]), append(ran, after[1]-w.before[i][1])
	}
	if len(w.pids) == 0 {
		return []string{"0"}
	}
	return []string{
		fmt.Sprint(len(w.pids)), fmt.Sprintf("%d KiB", quantile(private, 0.5)), fmt.Sprintf("%d KiB", quantile(pss, 0.5)),
		shown(time.Duration(quantile(cpu, 1))), fmt.Sprintf("%d times", quantile(ran, 1)),
	}
}

// scheduled is the time on a processor, in nanoseconds, and how often it was given
// one (Documentation/scheduler/sched-stats.rst).
func scheduled(pid int) (got [2]int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%d %d %d", &got[0], new(int64), &got[1])
	}
	return got, err
}

// resident is memory in KiB: what nobody else has, and that plus a share of what
// others have too (proc_pid_smaps(5)).
func resident(pid int) (private, pss int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for entry := range strings.Lines(string(text)) {
		var n int64
		name, value, _ := strings.Cut(entry, ":")
		fmt.Sscan(value, &n)
		switch name {
		case "Private_Clean", "Private_Dirty":
			private += n
		case "Pss":
			pss = n
		}
	}
	return private, pss, err
}

// parents are all processes with their parents.
func parents() map[int]int {
	of := map[int]int{}
	entries, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range entries {
		stat := line(file)
		fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && len(fields) > 1 {
			of[pid], _ = strconv.Atoi(fields[1])
		}
	}
	return of
}

// childrenOf are the processes whose parent is one of some.
func childrenOf(parent map[int]int, some []int) (children []int) {
	for pid, of := range parent {
		if slices.Contains(some, of) {
			children = append(children, pid)
		}
	}
	return children
}
