package doctor_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"codespace/tests/need"

	"golang.org/x/sys/unix"
)

// kind is a way in which a host may offer cgroups. The hierarchies are the kernel's
// own, shown as such a host shows them. A v2-only host that has a memory controller
// cannot be made on a hybrid one: v1 holds the controllers (sandbox/leaf_test.go has
// it as a tree of files).
type kind struct {
	name   string
	root   bool
	script string // makes it, in a mount namespace of its own
	memory bool   // it can limit memory
}

const delegate = `for c in memory pids; do d=/sys/fs/cgroup/$c/$0; mkdir $d; chown 61234 $d $d/cgroup.procs; echo $$ > $d/cgroup.procs; done`

var kinds = []kind{
	{"v1 alone", asRoot, "umount /sys/fs/cgroup/unified", true},
	{"v2 alone", asRoot, "umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup", false},
	{"v2 alone", asPlain, "umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup", false},
	{"read-only", asRoot, "for d in /sys/fs/cgroup /sys/fs/cgroup/*; do mountpoint -q $d && mount -o remount,bind,ro $d || true; done", false},
	{"delegated", asPlain, delegate, true},
	{"none", asRoot, noGroups, false},
	{"none", asPlain, noGroups, false},
	{"hidden", asRoot, hideGroups, false},
	{"hidden", asPlain, hideGroups, false},
	{"one hidden", asRoot, "mount -t tmpfs none /sys/fs/cgroup/memory", false},
	{"v2 elsewhere", asRoot, noGroups + "; mount -t cgroup2 none /mnt", false},
	{"v2 over v1", asRoot, "mount -t cgroup2 none /sys/fs/cgroup", false},
	{"v1 without devices", asRoot, "umount /sys/fs/cgroup/devices", false},
}

// ending is what matters here of the record of codespace run --json.
type ending struct {
	Termination string
	ExitCode    *int `json:"exit_code"`
	Receipt     struct{ Layers []string }
}

// TestKindsOfCgroups runs the same commands under each kind: where memory can be
// limited it is, and elsewhere that is said and strict refuses.
func TestKindsOfCgroups(t *testing.T) {
	need.Root(t)
	need.Command(t, "unshare")
	needHybrid(t)
	for _, k := range kinds {
		t.Run(k.name+" as "+map[bool]string{asRoot: "root", asPlain: "plain user"}[k.root], func(t *testing.T) {
			p := newPlace(t, k.root)
			k.best(t, p)
			k.strict(t, p)
			wantNoGroup(t, p)
		})
	}
}

func needHybrid(t *testing.T) {
	t.Helper()
	_, v1 := os.Stat("/sys/fs/cgroup/memory/cgroup.procs")
	_, v2 := os.Stat("/sys/fs/cgroup/unified/cgroup.procs")
	need.Feature(t, "hybrid-cgroups", v1 == nil && v2 == nil, "this host has not both versions of cgroups")
}

// enter is the command line that runs codespace there. The shell's own group has the
// name of the place, to be found again.
func (k kind) enter(p *place, flags ...string) []string {
	run := append(codespace("run", "--json"), flags...)
	return append([]string{"unshare", "-m", "sh", "-ec", k.script + `; exec "$@"`, filepath.Base(p.dir)}, p.as(run...)...)
}

// take is a command that takes some MiB of memory.
func take(mib int) []string {
	return []string{"--", "dd", "if=/dev/zero", "of=/dev/null", "bs=" + strconv.Itoa(mib) + "M", "count=1"}
}

func (k kind) best(t *testing.T, p *place) {
	t.Helper()
	small := k.end(t, p, append([]string{"--memory", "128MiB"}, take(16)...)...)
	if small.Termination != "exited" || small.ExitCode == nil || *small.ExitCode != 0 {
		t.Errorf("a command within its limit ended as %+v", small)
	}
	all := strings.Join(small.Receipt.Layers, "\n")
	if strings.Contains(all, "cgroup: memory limit") != k.memory || strings.Contains(all, "\ncgroup: none for memory") == k.memory {
		t.Errorf("memory can be limited: %v, and the receipt is %q", k.memory, small.Receipt.Layers)
	}
	large := k.end(t, p, append([]string{"--memory", "64MiB"}, take(200)...)...)
	if want := map[bool]string{true: "oom", false: "exited"}[k.memory]; large.Termination != want {
		t.Errorf("a command beyond its limit ended as %+v, want %s", large, want)
	}
}

func (k kind) end(t *testing.T, p *place, flags ...string) ending {
	t.Helper()
	r := p.do(t, k.enter(p, flags...))
	p.leaveGroup(t)
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
	var e ending
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil {
		t.Fatalf("no record: exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
	}
	return e
}

func (k kind) strict(t *testing.T, p *place) {
	t.Helper()
	r := p.do(t, k.enter(p, "--strict", "--", "touch", "made"))
	p.leaveGroup(t)
	_, err := os.Lstat(p.file("ws/made"))
	if ran := err == nil; ran != k.memory || (r.code == 0) != k.memory || !k.memory && r.code != 125 {
		t.Errorf("strict: exit %d, ran %v, stderr %q", r.code, ran, r.stderr)
	}
}

// leaveGroup removes the groups that delegate has made; what was in them has ended.
func (p *place) leaveGroup(t *testing.T) {
	t.Helper()
	for _, c := range []string{"memory", "pids"} {
		dir := filepath.Join("/sys/fs/cgroup", c, filepath.Base(p.dir))
		if err := unix.Rmdir(dir); err != nil && err != unix.ENOENT {
			t.Errorf("cannot remove %s: %v", dir, err)
		}
	}
}

// wantNoGroup wants no group of the place's own run directory to be left, of which
// the name is in each.
func wantNoGroup(t *testing.T, p *place) {
	t.Helper()
	left, err := filepath.Glob("/sys/fs/cgroup/*/" + filepath.Base(p.dir))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// TestNoCgroupsAtAll: commands run, one line says what is not enforced, and doctor
// agrees. TestHostile has the same hosts with --strict, which is refused.
func TestNoCgroupsAtAll(t *testing.T) {
	for _, h := range environments {
		if h.knob != groupsKnob {
			continue
		}
		t.Run(h.name+" as "+map[bool]string{asRoot: "root", asPlain: "plain user"}[h.root], func(t *testing.T) {
			p := newPlace(t, h.root)
			d := p.diagnose(t, h.enter(t, p, true, codespace("doctor", "--json")))
			wantNoCgroups(t, d)
			wantReceipt(t, d)
			wantNothingLeft(t, p)
			r := p.do(t, h.enter(t, p, true, codespace("run", "-w", p.file("ws"), "--", "true")))
			if r.code != 0 || r.stderr != "codespace: best-effort: cgroup: none for memory and cpu (not enforced) (--strict refuses instead)\n" {
				t.Errorf("exit status %d, stderr %q", r.code, r.stderr)
			}
		})
	}
}

func wantNoCgroups(t *testing.T, d diagnosis) {
	t.Helper()
	if !d.CanRun || d.Strength != "weaker" || !slices.Contains(d.Proof.Receipt, "pids: RLIMIT_NPROC of its own user namespace") {
		t.Errorf("can run: %v, %s, %+v", d.CanRun, d.Strength, d.Proof)
	}
	for layer, want := range map[string]finding{
		"cgroup memory": {State: "missing", Knob: groupsKnob}, "cgroup cpu": {State: "missing", Knob: groupsKnob},
		"cgroup pids": {State: "available"}, "cgroup kill": {State: "weaker", Knob: groupsKnob},
	} {
		got := find(d.Layers, layer)
		wantFinding(t, got)
		if got.State != want.State || got.Knob != want.Knob {
			t.Errorf("layer %+v, want it %s for %q", got, want.State, want.Knob)
		}
	}
	if c := find(d.Circumstances, groupsKnob); c.State != "noted" || c.Fix == "" {
		t.Errorf("circumstance %+v, want it noted with a fix", c)
	}
}

// TestDeviceRulesReachCells: on v2 the cells are beside the cgroup that libcontainer
// sets the rules on.
func TestDeviceRulesReachCells(t *testing.T) {
	need.Root(t)
	need.Command(t, "unshare")
	needHybrid(t)
	p := newPlace(t, asRoot)
	cmd := exec.Command("unshare", append([]string{"-m", "sh", "-ec", kinds[1].script + `; exec "$@"`, "sh"},
		codespace("run", "-w", p.file("ws"), "--", "sh", "-c", "echo up; read line", filepath.Base(p.dir))...)...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+p.file("state"))
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	defer cmd.Wait()
	defer stdin.Close()
	if _, err := stdout.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	dir := groupOf(t, filepath.Base(p.dir))
	if devicePrograms(t, dir) == 0 {
		t.Errorf("no device rules hold in %s", dir)
	}
	if n := devicePrograms(t, filepath.Dir(filepath.Dir(dir))); n != 0 {
		t.Fatalf("control: %d programs hold outside the sandbox", n)
	}
}

// groupOf finds the v2 cgroup of the sandboxed command that has a word among its
// arguments.
func groupOf(t *testing.T, word string) string {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	must(t, err)
	for _, p := range processes {
		argv, _ := os.ReadFile(filepath.Join(p, "cmdline")) // it may end meanwhile
		groups, _ := os.ReadFile(filepath.Join(p, "cgroup"))
		at := strings.Index(string(groups), "0::/")
		if strings.HasSuffix(string(argv), "\x00"+word+"\x00") && strings.Contains(string(groups), "/cell-") && at >= 0 {
			return filepath.Join("/sys/fs/cgroup/unified", strings.TrimSpace(string(groups[at+4:])))
		}
	}
	t.Fatalf("no command in a cell has the argument %s", word)
	return ""
}

// devicePrograms counts the programs that judge device access in a cgroup, its
// parents' included (bpf(2), BPF_PROG_QUERY).
func devicePrograms(t *testing.T, dir string) uint32 {
	t.Helper()
	f, err := os.Open(dir)
	must(t, err)
	defer f.Close()
	query := struct {
		target, attach, flags, attached uint32
		ids                             uint64
		count, _                        uint32
		_                               [32]byte
	}{target: uint32(f.Fd()), attach: unix.BPF_CGROUP_DEVICE, flags: unix.BPF_F_QUERY_EFFECTIVE}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_QUERY, uintptr(unsafe.Pointer(&query)), unsafe.Sizeof(query))
	if errno != 0 {
		t.Fatalf("cannot ask for the programs of %s: %v", dir, errno)
	}
	return query.count
}
