package faults_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codespace/tests/need"

	"golang.org/x/sys/unix"
)

// disk is an ext4 file system of its own that can lose its power.
type disk struct{ image, at string }

func newDisk(t testing.TB) disk {
	t.Helper()
	need.Root(t)
	mkfs := need.Command(t, "mkfs.ext4")
	dir := t.TempDir()
	shared := filepath.Join(dir, "shared")
	d := disk{filepath.Join(dir, "image"), filepath.Join(shared, "disk")}
	err := os.Mkdir(shared, 0o755)
	if err == nil {
		err = unix.Mount("shared", shared, "tmpfs", 0, "")
	}
	need.Feature(t, "tmpfs-mounts", err == nil, fmt.Sprintf("cannot mount a tmpfs: %v", err))
	t.Cleanup(func() { unix.Unmount(shared, unix.MNT_DETACH) })
	// So that an unmount reaches the copies in other namespaces, as of the helpers of
	// other tests, however the host has its mounts.
	if err := unix.Mount("", shared, "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(d.image, nil, 0o600)
	if err == nil {
		err = os.Truncate(d.image, 16<<20)
	}
	if err == nil {
		err = os.Mkdir(d.at, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkfs, "-q", "-F", d.image).CombinedOutput(); err != nil {
		t.Fatalf("cannot make a file system: %v: %s", err, out)
	}
	out, err := d.mount()
	need.Feature(t, "loop-mounts", err == nil, fmt.Sprintf("cannot mount an image: %v: %s", err, out))
	t.Cleanup(func() { unix.Unmount(d.at, unix.MNT_DETACH) })
	return d
}

// mount mounts the disk, which replays its journal. Nothing but a sync makes the kernel
// write for a long time.
func (d disk) mount() ([]byte, error) {
	return exec.Command("mount", "-t", "ext4", "-o", "loop,commit=600", d.image, d.at).CombinedOutput()
}

// attached tells whether a loop device has the image.
func (d disk) attached() bool {
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	return slices.ContainsFunc(files, func(name string) bool {
		b, _ := os.ReadFile(name)
		return strings.TrimSpace(string(b)) == d.image
	})
}

// The ioctl by which ext4 goes down at once; the flag leaves its journal unwritten
// (fs/ext4/ext4.h: EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH).
const (
	shutdownIoctl = 0x8004587d // _IOR('X', 125, __u32)
	withoutFlush  = 2
)

// cut cuts the power of the disk, ends every process of this test and mounts again.
func (d disk) cut(t testing.TB) {
	t.Helper()
	top, err := os.Open(d.at)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(top.Fd()), shutdownIoctl, withoutFlush)
		top.Close()
	}
	if err != nil {
		t.Fatalf("cannot cut the power: %v", err)
	}
	killEverybody(t)
	if !within(promised, func() bool { err = unix.Unmount(d.at, 0); return err == nil }) {
		t.Fatalf("cannot unmount: %v", err)
	}
	// The file system lives on as long as a namespace of those that were killed.
	if !within(settleLimit, func() bool { return !d.attached() }) {
		t.Fatal("the disk is still in use")
	}
	if out, err := d.mount(); err != nil {
		t.Fatalf("cannot mount after the cut: %v: %s", err, out)
	}
}

// killEverybody ends all that runs below this test, which is no longer there after a
// power cut.
func killEverybody(t testing.TB) {
	t.Helper()
	gone := within(promised, func() bool {
		left := strangers()
		for _, p := range left {
			unix.Kill(p.pid, unix.SIGKILL)
		}
		return len(left) == 0
	})
	if !gone {
		t.Fatalf("cannot end %v", strangers())
	}
}

// newCutPlace is a place whose workspace is on a disk of its own, and its state too if
// they are together, with the files before the patch on it for good.
func newCutPlace(t testing.TB, together bool) (patchPlace, disk) {
	t.Helper()
	d := newDisk(t)
	p := patchPlace{newPlace(t)}
	p.workspace = filepath.Join(d.at, "ws")
	dirs := []string{p.workspace}
	if together {
		p.state = filepath.Join(d.at, "state")
		dirs = append(dirs, p.state)
	}
	for _, dir := range dirs {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.plant(t)
	top, err := os.Open(d.at)
	if err == nil {
		err = unix.Syncfs(int(top.Fd()))
		top.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return p.withFailpoints(t), d
}

// TestPowerCutLosesWhatIsNotSynced is the control: without it the tests below would
// pass on a disk that loses nothing.
func TestPowerCutLosesWhatIsNotSynced(t *testing.T) {
	p, d := newCutPlace(t, true)
	touch(t, p.file("not-synced"))
	if err := os.Rename(p.file("gone.txt"), p.file("renamed")); err != nil {
		t.Fatal(err)
	}
	d.cut(t)
	p.wantDisk(t, rolledBack)
}

// settledAfterCut cuts the power while a patch stands at a step, with what else happens
// before, and is how the next codespace settles it.
func settledAfterCut(t *testing.T, together bool, at step, before ...string) string {
	t.Helper()
	p, d := newCutPlace(t, together)
	p.arm(t, append(before, at.does("block"))...)
	s := p.mcp(t)
	answer := s.sendPatch(thePatch, "key")
	p.wantReached(t, at)
	d.cut(t)
	if r := s.await(t, answer); !r.gone {
		t.Fatalf("control: %v", r)
	}
	p.arm(t)
	return p.settledByNext(t)
}

// TestPowerCutAtEachStepOfPatch cuts the power at each step, of a disk that holds the
// ledger too, and at some of one that does not.
func TestPowerCutAtEachStepOfPatch(t *testing.T) {
	need.Root(t)
	var c tally
	steps := undisturbed(t)
	for together, steps := range map[bool][]step{true: steps, false: each(3, steps)} {
		for _, at := range steps {
			c.run(t, fmt.Sprintf("%v, ledger on it: %v", at, together), func(t *testing.T) string {
				return settledAfterCut(t, together, at)
			})
		}
	}
	c.report(t, applied, rolledBack, notFound)
}

// TestPowerCutWhilePatchIsUndone cuts the power at each step of undoing a patch whose
// last renaming failed.
func TestPowerCutWhilePatchIsUndone(t *testing.T) {
	need.Root(t)
	var c tally
	renames := of(undisturbed(t), "codespace-patch", "rename")
	last := renames[len(renames)-1]
	for _, at := range last.undoing(t) {
		c.run(t, at.String(), func(t *testing.T) string { return settledAfterCut(t, true, at, last.does("ENOSPC")) })
	}
	c.report(t, rolledBack)
	if c.words[rolledBack] != c.cases || c.cases < 10 {
		t.Errorf("%d patches that were being undone ended as %v", c.cases, c.words)
	}
}

// alone are patches of one change each, of the files before, with what they change.
var alone = map[string]struct {
	patch string
	does  func(tree)
}{
	"add":                    {another("new.txt"), func(w tree) { w["new.txt"] = file(0o644, "another\n") }},
	"add in a new directory": {another("x/y/new.txt"), func(w tree) { w["x"], w["x/y"], w["x/y/new.txt"] = "dir", "dir", file(0o644, "another\n") }},
	"update": {"*** Begin Patch\n*** Update File: tool.sh\n@@\n-echo one\n+echo two\n*** End Patch\n",
		func(w tree) { w["tool.sh"] = after["tool.sh"] }},
	"delete": {"*** Begin Patch\n*** Delete File: gone.txt\n*** End Patch\n", func(w tree) { delete(w, "gone.txt") }},
	"move": {"*** Begin Patch\n*** Update File: src/move.txt\n*** Move to: dst/moved.txt\n*** End Patch\n",
		func(w tree) { w["dst/moved.txt"] = w["src/move.txt"]; delete(w, "src/move.txt") }},
	"all": {thePatch, func(w tree) { clear(w); maps.Copy(w, after) }},
}

// TestPowerCutAfterAnswer cuts the power once a patch is answered: what was
// acknowledged is there.
func TestPowerCutAfterAnswer(t *testing.T) {
	need.Root(t)
	var c tally
	for name, change := range alone {
		want := maps.Clone(before)
		change.does(want)
		for _, together := range []bool{true, false} {
			c.run(t, fmt.Sprintf("%s, ledger on it: %v", name, together), func(t *testing.T) string {
				p, d := newCutPlace(t, together)
				s := p.mcp(t)
				if r := s.patch(t, change.patch, "key"); said(r) != applied {
					t.Fatalf("control: %v", r)
				}
				d.cut(t)
				return p.wantKept(t, want)
			})
		}
	}
	c.report(t, applied)
}

// wantKept wants the next codespace to know a patch as applied, and the disk to be so.
func (p patchPlace) wantKept(t *testing.T, want tree) string {
	t.Helper()
	if found := p.look(t); !maps.Equal(found, want) {
		t.Errorf("an acknowledged patch is lost:\n%s", differences(found, want))
	}
	s := p.mcp(t)
	word := s.settled(t, "key")
	if found := p.look(t); word != applied || !maps.Equal(found, want) {
		t.Errorf("operation_status says %s, and the disk differs:\n%s", word, differences(found, want))
	}
	s.end(t)
	wantNobodyBut(t)
	return word
}

// TestPowerCutAfterSettling cuts the power once a patch whose helper died at a step is
// answered: that is how it stays.
func TestPowerCutAfterSettling(t *testing.T) {
	need.Root(t)
	var c tally
	for name, change := range alone {
		patched := maps.Clone(before)
		change.does(patched)
		for _, at := range each(3, of(stepsOf(t, change.patch, patched), "codespace-patch")) {
			c.run(t, fmt.Sprint(name, ", ", at), func(t *testing.T) string {
				p, d := newCutPlace(t, false)
				p.arm(t, at.does("exit"))
				s := p.mcp(t)
				word := said(s.patch(t, change.patch, "key"))
				p.wantReached(t, at)
				p.wantTree(t, word, patched)
				d.cut(t)
				p.wantTree(t, word, patched)
				p.arm(t)
				next := p.mcp(t)
				if again := next.settled(t, "key"); again != word {
					t.Errorf("operation_status says %s, the answer was %s", again, word)
				}
				p.wantTree(t, word, patched)
				next.end(t)
				wantNobodyBut(t)
				return word
			})
		}
	}
	c.report(t, applied, rolledBack)
}
