package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codespace/sandbox"
	"codespace/tests/need"
)

// names are the directories in a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// Only the groups of an id and of what its holder numbered go, in every hierarchy
// and with their leaves.
func TestRemoveGroupsKeepsSiblings(t *testing.T) {
	f := fake(t)
	for _, h := range []string{"memory", "unified"} {
		for _, name := range []string{"codespace-abc", "codespace-abc-1", "codespace-abc-1-12", "codespace-abcd", "codespace-ab", "codespace-abd-1",
			"codespace-ABC-1", "abc-1", "xcodespace-abc-1", "codespace", "system.slice"} {
			f.group(h+"/"+name+"/init", nil)
			f.group(h+"/"+name+"/cell-1", nil)
		}
	}
	dirs := []string{f.dir + "/memory", f.dir + "/absent", f.dir + "/unified"}
	if err := sandbox.RemoveGroups(dirs, "abc"); err != nil {
		t.Fatal(err)
	}
	kept := []string{"abc-1", "codespace", "codespace-ABC-1", "codespace-ab", "codespace-abcd", "codespace-abd-1", "system.slice", "xcodespace-abc-1"}
	for _, h := range []string{"memory", "unified"} {
		if got := names(t, filepath.Join(f.dir, h)); !slices.Equal(got, kept) {
			t.Errorf("%s: %q", h, got)
		}
		if got := names(t, filepath.Join(f.dir, h, "codespace-abcd")); !slices.Equal(got, []string{"cell-1", "init"}) {
			t.Errorf("%s: a sibling lost its leaves: %q", h, got)
		}
	}
	if err := sandbox.RemoveGroups(dirs, "abc"); err != nil {
		t.Errorf("what is gone is no error: %v", err)
	}
	if err := sandbox.RemoveGroups(dirs, "ab-1"); err != nil {
		t.Error(err)
	}
	if got := names(t, dirs[0]); !slices.Equal(got, kept) {
		t.Errorf("ab-1 removed others: %q", got)
	}
}

// What cannot be removed is told by its path, and the others go.
func TestRemoveGroupsTellsWhatStays(t *testing.T) {
	f := fake(t)
	f.group("codespace-abc-1", map[string]string{"file": ""})
	f.group("codespace-abc-2/cell-1", nil)
	err := sandbox.RemoveGroups([]string{f.dir}, "abc")
	if err == nil || !strings.Contains(err.Error(), "codespace-abc-1") {
		t.Errorf("%v", err)
	}
	if got := names(t, f.dir); !slices.Equal(got, []string{"codespace-abc-1"}) {
		t.Errorf("%q", got)
	}
}

// Against the real hierarchies: a process that was left in a leaf is ended, and
// the groups go with it.
func TestRemoveGroupsOnThisHost(t *testing.T) {
	id := uniqueID(t)
	l := sandbox.LeafOf(hierarchy(t, id+"-1"), "cell-1")
	sibling := hierarchy(t, id+"9")
	_, err := os.Stat(filepath.Join(l.Unified, "cgroup.kill"))
	need.Feature(t, "cgroup.kill", l.Unified != "" && err == nil, "the kernel cannot end a cgroup")
	c := start(t)
	if err := l.Add(c.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.RemoveGroups((sandbox.Host{}).Groups(), id); err != nil {
		t.Error(err)
	}
	await(t, c.gone)
	for _, dir := range (sandbox.Host{}).Groups() {
		if _, err := os.Stat(filepath.Join(dir, sandbox.Plan{ID: id + "-1"}.GroupName())); err == nil {
			t.Errorf("a group is left in %s", dir)
		}
	}
	for _, dir := range sibling {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("the sibling's group is gone: %v", err)
		}
	}
}

// Groups are directories of this process's own cgroups, each of another hierarchy.
func TestGroupsOfThisHost(t *testing.T) {
	if _, err := os.Stat("/sys/fs/cgroup"); err != nil {
		need.Feature(t, "cgroups", false, err.Error())
	}
	groups := (sandbox.Host{}).Groups()
	devices := map[string]bool{}
	for _, dir := range groups {
		procs, _ := filepath.Glob(filepath.Join(dir, "*/cgroup.procs")) // where v2 is alone they are made beside its own
		in := false
		for _, file := range append(procs, filepath.Join(dir, "cgroup.procs")) {
			b, _ := os.ReadFile(file)
			in = in || slices.Contains(strings.Fields(string(b)), strconv.Itoa(os.Getpid()))
		}
		if !in {
			t.Errorf("this process is neither in %s nor below", dir)
		}
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if device := deviceOf(info); devices[device] {
			t.Errorf("%s is a hierarchy twice: %q", dir, groups)
		} else {
			devices[device] = true
		}
	}
	t.Logf("%q", groups)
}
