package line_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// flipping is a tree of n files that say 0 or 1, and patches that make it the other.
type flipping struct {
	trees   [2]disk
	patches [2]string // of 0 to 1, of 1 to 0
}

func newFlipping(n int) flipping {
	f := flipping{trees: [2]disk{{}, {}}}
	var hunks [2]strings.Builder
	for i := range n {
		name := fmt.Sprintf("d%d/f%d", i%7, i)
		for is := range 2 {
			f.trees[is][name] = fmt.Sprintf("%d\n%s", is, lines(20))
			fmt.Fprintf(&hunks[is], "*** Update File: %s\n@@\n-%d\n+%d\n", name, is, 1-is)
		}
	}
	f.trees[1]["new/made"] = "x\n"
	hunks[0].WriteString("*** Add File: new/made\n+x\n")
	hunks[1].WriteString("*** Delete File: new/made\n")
	f.patches = [2]string{around(hunks[0].String()), around(hunks[1].String())}
	return f
}

// below finds a program among the descendants of a process.
func below(pid int, program string) (found []int) {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		more, _ := os.ReadFile(task)
		children = append(append(children, ' '), more...)
	}
	seen := map[int]bool{}
	for word := range strings.FieldsSeq(string(children)) {
		child, err := strconv.Atoi(word)
		if err != nil || seen[child] {
			continue
		}
		seen[child] = true
		if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", child)); filepath.Base(exe) == program {
			found = append(found, child)
		}
		found = append(found, below(child, program)...)
	}
	return found
}

// killing kills a program of a server in the middle of a patch.
func killing(t *testing.T, w *wired, program string) {
	t.Helper()
	pids := []int{w.cmd.Process.Pid}
	if program != "codespace" {
		pids = below(w.cmd.Process.Pid, program)
	}
	for _, pid := range pids {
		if p, err := os.FindProcess(pid); err == nil {
			p.Kill()
		}
	}
}

// TestPatchIsKilled kills the programs of the line at random moments of a patch. Then
// another server says how the patch ended, and the disk is so, whole.
func TestPatchIsKilled(t *testing.T) {
	dir := workspace(t)
	f := newFlipping(300)
	write(t, dir, f.trees[0])
	s := start(t, dir)
	began := time.Now()
	s.patch(f.patches[0], nil).applied(t)
	took := time.Since(began)
	s.patch(f.patches[1], nil).applied(t)
	s.close()
	must(t, os.Remove(dir+"/new"))
	is, ended := 0, map[string]int{}
	for round := range 24 {
		program := []string{"codespace", "codespace-runner", "codespace-patch"}[round%3]
		key := fmt.Sprint("round ", round)
		w := wire(t, "-w", dir)
		w.send(hello + calling(1, "apply_patch", fields{"workspace_id": "ws", "patch": f.patches[is], "operation_key": key}))
		<-time.After(time.Duration(rand.Int64N(int64(took) * 5 / 4))) // any moment
		killing(t, w, program)
		w.in.Close()
		w.cmd.Wait()
		status := settledAs(t, dir, key)
		ended[program+" "+status]++
		if status == "applied" {
			is = 1 - is
		}
		if status == "applied" && is == 0 {
			must(t, os.Remove(dir+"/new")) // no patch deletes a directory
		}
		same(t, seen(t, dir, false), laid(f.trees[is], nil))
		if t.Failed() {
			t.Fatalf("round %d, %s was killed: %s; stderr: %s", round, program, status, w.stderr.String())
		}
	}
	t.Logf("patches of %v: %v", took.Round(time.Millisecond), ended)
}

// settledAs is how a later server says that a patch ended.
func settledAs(t *testing.T, dir, key string) (status string) {
	t.Helper()
	s := start(t, dir)
	defer s.close()
	eventually(t, soon, "the patch is settled", func() bool {
		op := s.call("operation_status", fields{"workspace_id": s.workspace, "operation_key": key})
		status = op.text("status") + op.text("code")
		return status != "unknown" && s.patch(around("*** Delete File: nothing\n"), nil).text("code") != "WORKSPACE_BUSY"
	})
	if status != "applied" && status != "failed_rolled_back" && status != "OPERATION_NOT_FOUND" {
		t.Errorf("it ended as %q", status)
	}
	return status
}
