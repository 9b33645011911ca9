package sandbox_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"codespace/sandbox"
	"codespace/tests/need"
)

// faked is a directory tree with the files of a cgroup file system, so that both
// versions are shown on every host. It is no cgroup: what the kernel makes of the
// values is shown by the tests against the real hierarchy below.
type faked struct {
	t   *testing.T
	dir string
}

func fake(t *testing.T) faked { return faked{t, t.TempDir()} }

// group makes a directory with files and returns its path.
func (f faked) group(name string, files map[string]string) string {
	f.t.Helper()
	dir := filepath.Join(f.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		f.t.Fatal(err)
	}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
			f.t.Fatal(err)
		}
	}
	return dir
}

// holds wants exactly that content in the files of a directory.
func holds(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for file, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, file)); string(got) != want {
			t.Errorf("%s holds %q, want %q: %v", filepath.Join(dir, file), got, want, err)
		}
	}
}

func TestLeafOnFakedUnifiedHost(t *testing.T) {
	f := fake(t)
	files := map[string]string{"memory.max": "", "memory.swap.max": "", "pids.max": "", "cgroup.procs": "", "cgroup.kill": ""}
	init := f.group("codespace-a/init", nil)
	made := f.group("codespace-a/cell-1", files)
	l := sandbox.LeafOf(map[string]string{"": init}, "cell-1")
	if l != (sandbox.Leaf{Memory: made, PIDs: made, Unified: made}) {
		t.Fatalf("%+v", l)
	}
	if err := errors.Join(l.Limit(4096, 7), l.Add(42)); err != nil {
		t.Fatal(err)
	}
	l.Kill()
	holds(t, made, map[string]string{"memory.max": "4096", "memory.swap.max": "0", "pids.max": "7", "cgroup.procs": "42", "cgroup.kill": "1"})
	os.Remove(filepath.Join(made, "memory.swap.max")) // a kernel that does not account swap
	if err := l.Limit(4096, 7); err != nil {
		t.Errorf("without an account of swap: %v", err)
	}
	f.group("codespace-a/cell-1", map[string]string{
		"memory.events": "low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n", "memory.peak": "8192\n", "pids.peak": "5\n",
		"cpu.stat": "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n",
	})
	if s := l.Spent(); s != (sandbox.Spent{OOMKills: 2, PeakMemory: 8192, PeakPIDs: 5, CPU: 1500 * time.Microsecond}) {
		t.Errorf("%+v", s)
	}
}

func TestLeafOnFakedHybridHost(t *testing.T) {
	f := fake(t)
	paths := map[string]string{}
	for _, controller := range []string{"memory", "pids", "cpu", "unified"} {
		paths[strings.TrimPrefix(controller, "unified")] = f.group(controller+"/codespace-a/init", nil)
	}
	l := sandbox.LeafOf(paths, "cell-1")
	want := sandbox.Leaf{Memory: f.dir + "/memory/codespace-a/cell-1", PIDs: f.dir + "/pids/codespace-a/cell-1", Unified: f.dir + "/unified/codespace-a/cell-1"}
	if l != want {
		t.Fatalf("%+v", l)
	}
	procs := map[string]string{"cgroup.procs": ""}
	f.group("memory/codespace-a/cell-1", map[string]string{"cgroup.procs": "", "memory.limit_in_bytes": "", "memory.memsw.limit_in_bytes": ""})
	f.group("pids/codespace-a/cell-1", map[string]string{"cgroup.procs": "", "pids.max": ""})
	f.group("unified/codespace-a/cell-1", procs)
	if err := errors.Join(l.Limit(4096, 7), l.Add(42)); err != nil {
		t.Fatal(err)
	}
	holds(t, l.Memory, map[string]string{"memory.limit_in_bytes": "4096", "memory.memsw.limit_in_bytes": "4096", "cgroup.procs": "42"})
	holds(t, l.PIDs, map[string]string{"pids.max": "7", "cgroup.procs": "42"})
	holds(t, l.Unified, map[string]string{"cgroup.procs": "42"})
	l.Kill() // there is no cgroup.kill before Linux 5.14
	os.Remove(filepath.Join(l.Memory, "memory.memsw.limit_in_bytes"))
	if err := l.Limit(4096, 7); err != nil {
		t.Errorf("without an account of swap: %v", err)
	}
	f.group("memory/codespace-a/cell-1", map[string]string{
		"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n", "memory.max_usage_in_bytes": "16384\n"})
	if s := l.Spent(); s != (sandbox.Spent{OOMKills: 4, PeakMemory: 16384}) {
		t.Errorf("%+v", s)
	}
}

// A limit that cannot be set is an error; where a host has no group there is none
// to set.
func TestLeafWithoutItsFiles(t *testing.T) {
	f := fake(t)
	empty := f.group("empty", nil)
	for name, l := range map[string]sandbox.Leaf{"memory": {Memory: empty}, "pids": {PIDs: empty}} {
		if err := l.Limit(1, 1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.Add(1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
		if s := l.Spent(); s != (sandbox.Spent{}) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	var none sandbox.Leaf
	if err := errors.Join(none.Limit(1, 1), none.Add(1), none.Remove()); err != nil || none.Spent() != (sandbox.Spent{}) {
		t.Errorf("no group at all: %v", err)
	}
	none.Kill()
	nowhere := map[string]string{"": filepath.Join(f.dir, "absent/deep/init")}
	if l := sandbox.LeafOf(nowhere, "cell-1"); l != (sandbox.Leaf{}) {
		t.Errorf("a leaf where none can be made: %+v", l)
	}
	unified := map[string]string{"": f.group("codespace-a/init", nil)} // no controller is delegated
	if l := sandbox.LeafOf(unified, "cell-1"); l.Memory != "" || l.PIDs != "" || l.Unified == "" {
		t.Errorf("%+v", l)
	}
	garbage := f.group("garbage", map[string]string{"memory.events": "oom_kill many\n", "memory.peak": "max\n", "pids.peak": "", "cpu.stat": "usage_usec"})
	if s := (sandbox.Leaf{Memory: garbage, PIDs: garbage, Unified: garbage}).Spent(); s != (sandbox.Spent{}) {
		t.Errorf("%+v", s)
	}
}

func TestLeafRemove(t *testing.T) {
	f := fake(t)
	l := sandbox.Leaf{Memory: f.group("m", nil), PIDs: f.group("p", nil), Unified: f.group("u", nil)}
	if err := l.Remove(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{l.Memory, l.PIDs, l.Unified} {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there", dir)
		}
	}
	if err := l.Remove(); err != nil {
		t.Errorf("what is gone is no error: %v", err)
	}
	busy := f.group("busy", map[string]string{"file": ""}) // no cgroup: rmdir says ENOTEMPTY for EBUSY
	l = sandbox.Leaf{Memory: busy, PIDs: f.group("p", nil)}
	if err := l.Remove(); err == nil || !strings.Contains(err.Error(), busy) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(l.PIDs); err == nil {
		t.Error("one that stays keeps the others")
	}
}

// hierarchy makes a sandbox's group in every real hierarchy of this host, named
// like a sandbox's of that id, and returns its init by controller as libcontainer
// does.
func hierarchy(t *testing.T, id string) map[string]string {
	t.Helper()
	need.Root(t)
	paths := map[string]string{}
	for _, dir := range (sandbox.Host{}).Groups() {
		controller := strings.Split(strings.TrimPrefix(dir, "/sys/fs/cgroup/"), "/")[0]
		if _, err := os.Stat(filepath.Join("/sys/fs/cgroup", controller, "cgroup.controllers")); err == nil || strings.HasSuffix(dir, "/sys/fs/cgroup") {
			controller = ""
		}
		paths[controller] = filepath.Join(dir, sandbox.Plan{ID: id}.GroupName(), "init")
		if err := os.MkdirAll(paths[controller], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { sandbox.RemoveGroups((sandbox.Host{}).Groups(), id) })
	_, memory := paths["memory"]
	_, unified := paths[""]
	need.Feature(t, "cgroups", memory || unified, "no cgroup hierarchy that a sandbox would use")
	return paths
}

func uniqueID(t *testing.T) string {
	return "test-" + strconv.Itoa(os.Getpid()) + strings.ToLower(t.Name())
}

// What the leaf writes is what the kernel holds, and a process in it is counted,
// ended and gone.
func TestLeafOnThisHost(t *testing.T) {
	l := sandbox.LeafOf(hierarchy(t, uniqueID(t)), "cell-1")
	if l.Unified == "" && l.Memory == "" {
		t.Fatalf("%+v", l)
	}
	if err := l.Limit(64<<20, 7); err != nil {
		t.Fatal(err)
	}
	if l.PIDs != "" {
		holds(t, l.PIDs, map[string]string{"pids.max": "7\n"})
	}
	if _, err := os.Stat(filepath.Join(l.Memory, "memory.limit_in_bytes")); err == nil {
		holds(t, l.Memory, map[string]string{"memory.limit_in_bytes": "67108864\n"})
	} else if l.Memory != "" {
		holds(t, l.Memory, map[string]string{"memory.max": "67108864\n", "memory.swap.max": "0\n"})
	}
	c := start(t)
	if err := l.Add(c.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	in, err := os.ReadFile("/proc/" + strconv.Itoa(c.cmd.Process.Pid) + "/cgroup")
	if err != nil || !strings.Contains(string(in), "/cell-1\n") {
		t.Errorf("the process is in %s, %v", in, err)
	}
	l.Kill()
	if _, err := os.Stat(filepath.Join(l.Unified, "cgroup.kill")); err != nil {
		c.cmd.Process.Kill() // a kernel or host without it
	}
	<-c.gone
	l.Spent()
	if err := l.Remove(); err != nil {
		t.Error(err)
	}
}
