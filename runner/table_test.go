package runner

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// finished enters a process into the table as if it had run and ended.
func finished(t *testing.T, r *Runner, n int, workspace string) *process {
	t.Helper()
	p := newProcess(ExecRequest{ProcessID: fmt.Sprintf("proc_%032x", n), Workspace: workspace}, limits())
	if err := r.reserve(p, 1000); err != nil {
		t.Fatal(err)
	}
	p.visible = true
	p.status.State = Exited
	r.retire(p)
	return p
}

func found(r *Runner, p *process) bool {
	_, err := r.find(p.id)
	return err == nil
}

func TestFinishedHandleStaysFifteenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(nil, Place{}, nil)
		p := finished(t, r, 1, "site")
		time.Sleep(15*time.Minute - time.Nanosecond) // the bubble's clock
		if !found(r, p) {
			t.Fatal("the handle is gone before 15 minutes")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if found(r, p) {
			t.Fatal("the handle is there after 15 minutes")
		}
	})
}

func TestOldestFinishedHandleGivesWayBeyond64(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(nil, Place{}, nil)
		other := finished(t, r, 1000, "other")
		var all []*process
		for n := range retainedMax + 1 {
			all = append(all, finished(t, r, n, "site"))
			if n == retainedMax-1 && !found(r, all[0]) {
				t.Fatalf("the first of %d handles is gone", n+1)
			}
		}
		if found(r, all[0]) {
			t.Errorf("the first of %d handles is still there", len(all))
		}
		for _, p := range append(all[1:], other) {
			if !found(r, p) {
				t.Errorf("handle %s is gone", p.id)
			}
		}
	})
}

// One that ran long is not the first to go when it ends: handles age from the end.
func TestLongRunningHandleIsNotTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(nil, Place{}, nil)
		long := newProcess(ExecRequest{ProcessID: fmt.Sprintf("proc_%032x", 9999), Workspace: "site"}, limits())
		if err := r.reserve(long, 1000); err != nil {
			t.Fatal(err)
		}
		long.visible = true
		for n := range retainedMax + 10 {
			finished(t, r, n, "site")
		}
		long.status.State = Exited
		r.retire(long)
		if !found(r, long) {
			t.Error("the handle is gone as soon as its process ended")
		}
	})
}

func TestLiveProcessesAreLimitedPerWorkspace(t *testing.T) {
	r := New(nil, Place{}, nil)
	reserve := func(n int, workspace string) error {
		return r.reserve(newProcess(ExecRequest{ProcessID: fmt.Sprintf("proc_%032x", n), Workspace: workspace}, limits()), 2)
	}
	for n := range 2 {
		if err := reserve(n, "site"); err != nil {
			t.Fatalf("process %d of 2: %v", n+1, err)
		}
	}
	var f *Fault
	if err := reserve(2, "site"); !errors.As(err, &f) || f.Code != ProcessLimit || !f.Retryable {
		t.Errorf("process 3 of 2: %v, want %s", err, ProcessLimit)
	}
	if err := reserve(2, "other"); err != nil {
		t.Errorf("another workspace: %v", err)
	}
	r.drop(r.processes[fmt.Sprintf("proc_%032x", 0)])
	if err := reserve(3, "site"); err != nil {
		t.Errorf("after one was dropped: %v", err)
	}
}

func TestProcessIDIsCheckedAndTakenOnce(t *testing.T) {
	r := New(nil, Place{}, nil)
	good := fmt.Sprintf("proc_%032x", 7)
	for _, id := range []string{"", "proc_", "proc_7", good + "0", "PROC_" + good[5:], good + "\n", "proc_" + fmt.Sprintf("%032X", 0xabc)} {
		if err := r.reserve(newProcess(ExecRequest{ProcessID: id}, limits()), 9); err == nil {
			t.Errorf("id %q was accepted", id)
		}
	}
	if err := r.reserve(newProcess(ExecRequest{ProcessID: good}, limits()), 9); err != nil {
		t.Fatal(err)
	}
	if err := r.reserve(newProcess(ExecRequest{ProcessID: good}, limits()), 9); err == nil {
		t.Error("one id was accepted twice")
	}
}

func TestProcessThatDidNotStartLeavesNoHandle(t *testing.T) {
	r := New(nil, Place{}, nil)
	p := newProcess(ExecRequest{ProcessID: fmt.Sprintf("proc_%032x", 7), Workspace: "site"}, limits())
	if err := r.reserve(p, 9); err != nil {
		t.Fatal(err)
	}
	if found(r, p) {
		t.Error("a process is visible before it started")
	}
	r.drop(p)
	if len(r.processes) != 0 || len(r.order) != 0 || r.live["site"] != 0 {
		t.Errorf("left: %d handles, %d in order, %d live", len(r.processes), len(r.order), r.live["site"])
	}
}

func TestEndingRunnerStartsNothing(t *testing.T) {
	r := New(nil, Place{}, nil)
	r.Close()
	var f *Fault
	err := r.reserve(newProcess(ExecRequest{ProcessID: fmt.Sprintf("proc_%032x", 7)}, limits()), 9)
	if !errors.As(err, &f) || f.Code != RunnerUnavailable {
		t.Errorf("got %v, want %s", err, RunnerUnavailable)
	}
}
