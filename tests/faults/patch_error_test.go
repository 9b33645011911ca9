package faults_test

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"codespace/tests/need"

	"golang.org/x/sys/unix"
)

// TestPatchStepFails makes each step of the patch helper fail: the patch is applied or
// rolled back, and that is answered.
func TestPatchStepFails(t *testing.T) {
	var c tally
	steps := shared(of(undisturbed(t), "codespace-patch"))
	for _, errno := range []string{"ENOSPC", "EIO"} {
		for _, at := range steps {
			c.run(t, at.String()+" "+errno, func(t *testing.T) string { return newPatchPlace(t).answeredDespite(t, at, at.does(errno)) })
		}
	}
	c.report(t, applied, rolledBack)
}

// TestPatchFailsWhileItIsUndone makes the steps behind one that fails fail too: what is
// being undone then is undone by another helper.
func TestPatchFailsWhileItIsUndone(t *testing.T) {
	var c tally
	for _, at := range each(3, shared(of(undisturbed(t), "codespace-patch"))) {
		for more := 1; more <= 3; more += 2 {
			next := step{at.program, at.hit + more, ""}
			c.run(t, fmt.Sprint(at, " and ", next.hit), func(t *testing.T) string {
				return newPatchPlace(t).answeredDespite(t, at, at.does("ENOSPC"), next.does("EIO"))
			})
		}
	}
	c.report(t, applied, rolledBack)
}

// TestLedgerStepFails makes each step of the gateway fail. What was minted is settled
// without a restart.
func TestLedgerStepFails(t *testing.T) {
	var c tally
	for _, at := range of(undisturbed(t), "codespace") {
		c.run(t, at.String(), func(t *testing.T) string {
			p := newPatchPlace(t)
			p.arm(t, at.does("EIO"))
			s := p.mcp(t)
			r := s.patch(t, thePatch, "key")
			p.wantReached(t, at)
			if r.code() != noLedger {
				t.Errorf("the answer: %v", r)
			}
			word := p.wantSettled(t, s, "key")
			s.end(t)
			wantNobodyBut(t)
			return word
		})
	}
	c.report(t, applied, rolledBack, notFound)
}

// mountTmpfs mounts one of a size in KiB over a directory until the test ends.
func mountTmpfs(t testing.TB, dir string, size int) {
	t.Helper()
	need.Root(t)
	err := unix.Mount("codespace-test", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=755,size=%dk", size))
	need.Feature(t, "tmpfs-mounts", err == nil, fmt.Sprint("cannot mount a tmpfs: ", err))
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
}

// largerFiles is a patch of new files of 8 KiB each.
func largerFiles(n int) (text string, made tree) {
	line := strings.Repeat("x", 127)
	made = tree{"large": "dir"}
	var b strings.Builder
	b.WriteString("*** Begin Patch\n")
	for i := range n {
		name := fmt.Sprintf("large/%d", i)
		made[name] = file(0o644, strings.Repeat(line+"\n", 64))
		b.WriteString("*** Add File: " + name + "\n" + strings.Repeat("+"+line+"\n", 64))
	}
	b.WriteString("*** End Patch\n")
	return b.String(), made
}

// TestWorkspaceIsFull applies a patch of 40 KiB to workspaces of more and more room.
func TestWorkspaceIsFull(t *testing.T) {
	need.Root(t)
	var c tally
	text, made := largerFiles(5)
	for size := 4; size <= 64; size += 4 {
		c.run(t, fmt.Sprintf("%d KiB", size), func(t *testing.T) string {
			p := patchPlace{newPlace(t)}
			mountTmpfs(t, p.workspace, size)
			give(t, p.workspace)
			s := p.mcp(t)
			word := said(s.patch(t, text, "key"))
			found, want := p.look(t), tree{}
			if word == applied {
				want = made
			}
			if !maps.Equal(found, want) || word != applied && word != rolledBack {
				t.Errorf("%s, and the disk differs:\n%s", word, differences(found, want))
			}
			if again := s.settled(t, "key"); again != word {
				t.Errorf("operation_status says %s after %s", again, word)
			}
			if err := os.RemoveAll(p.file("large")); err != nil {
				t.Fatal(err)
			}
			s.end(t)
			wantNobodyBut(t)
			return word
		})
	}
	c.report(t, applied, rolledBack)
}
