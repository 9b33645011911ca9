package doctor_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"codespace/tests/need"
)

// hostile is one environment in which no command can run.
type hostile struct {
	name string
	root bool // who acts
	// enter is the command line that does argv in this environment, or, without the
	// obstacle, in the same one but for it.
	enter func(t *testing.T, p *place, obstacle bool, argv []string) []string
	flags []string // of run and doctor, with the obstacle only
	knob  string   // what is in the way
	seen  []string // circumstances that must be named
	layer string   // that must be missing
}

// shell enters by a shell command, in namespaces of its own.
func shell(flags, script string, outside bool) func(*testing.T, *place, bool, []string) []string {
	return func(t *testing.T, p *place, obstacle bool, argv []string) []string {
		need.Command(t, "unshare")
		do := script
		if !obstacle {
			do = "true"
		}
		sh := []string{"unshare", flags, "sh", "-ec", do + `; exec "$@"`, "sh"}
		if outside { // root prepares, and the user comes in
			need.Root(t)
			return append(sh, p.as(argv...)...)
		}
		return p.as(append(sh, argv...)...)
	}
}

func underFilter(calls string) func(*testing.T, *place, bool, []string) []string {
	return func(t *testing.T, p *place, obstacle bool, argv []string) []string {
		need.Command(t, "gcc")
		program, err := filter()
		must(t, err)
		deny := calls
		if !obstacle {
			deny = "n"
		}
		return p.as(append([]string{program, deny}, argv...)...)
	}
}

// ifObstacle enters through a program only with the obstacle.
func ifObstacle(prefix ...string) func(*testing.T, *place, bool, []string) []string {
	return func(t *testing.T, p *place, obstacle bool, argv []string) []string {
		if !obstacle || len(prefix) == 0 {
			return p.as(argv...)
		}
		need.Command(t, prefix[0])
		return p.as(append(slices.Clone(prefix), argv...)...)
	}
}

const (
	filterKnob = "a seccomp filter on this process"
	procKnob   = "a masked /proc"
	groupsKnob = "no cgroup file system"

	filterSeen = "a seccomp filter that denies setting up"
	nestedSeen = "nested in another sandbox"

	maskProc   = "mount --bind /dev/null /proc/interrupts"
	noGroups   = "umount -R /sys/fs/cgroup"
	hideGroups = "mount -t tmpfs none /sys/fs/cgroup"

	// A root directory that is no mount point, with the host's directories in it.
	enterChroot = `jail=$PWD/../jail; mkdir -p "$jail"
for d in usr etc proc sys dev tmp run bin sbin lib lib64; do
	if [ -L /$d ]; then cp -Pf /$d "$jail"; elif [ -d /$d ]; then mkdir -p "$jail/$d"; mount --rbind /$d "$jail/$d"; fi
done
set -- chroot "$jail" env -C "$PWD" "$@"`
)

var environments = []hostile{
	{name: "filter denies namespaces", root: asPlain, enter: underFilter("u"), knob: filterKnob, seen: []string{filterSeen, nestedSeen}, layer: "user namespaces"},
	{name: "filter denies namespaces", root: asRoot, enter: underFilter("u"), knob: filterKnob, seen: []string{filterSeen, nestedSeen}, layer: "mount API"},
	{name: "filter denies mount", root: asPlain, enter: underFilter("m"), knob: filterKnob, seen: []string{filterSeen, nestedSeen}, layer: "mount API"},
	{name: "filter denies mount", root: asRoot, enter: underFilter("m"), knob: filterKnob, seen: []string{filterSeen, nestedSeen}, layer: "mount API"},
	{name: "no user namespace left", root: asPlain, enter: shell("-Urm", "echo 0 > /proc/sys/user/max_user_namespaces", false),
		knob: "user.max_user_namespaces", seen: []string{"user.max_user_namespaces is 0", "inside a user namespace"}, layer: "user namespaces"},
	{name: "masked proc", root: asPlain, enter: shell("-Urm", maskProc, false), knob: procKnob, layer: "proc"},
	{name: "proc masked by root", root: asPlain, enter: shell("-m", maskProc, true), knob: procKnob, layer: "proc"},
	{name: "masked proc", root: asRoot, enter: shell("-m", maskProc, false), knob: procKnob, layer: "proc"},
	{name: "read-only proc", root: asPlain, enter: shell("-m", "mount -o remount,bind,ro /proc", true), knob: "a read-only /proc", layer: "proc"},
	{name: "no cgroup of the user's own", root: asPlain, enter: ifObstacle(), flags: []string{"--strict"},
		knob: "no cgroup of this user's own", layer: "cgroup memory"},
	{name: "cgroups unmounted", root: asPlain, enter: shell("-m", noGroups, true), flags: []string{"--strict"}, knob: groupsKnob, seen: []string{groupsKnob}, layer: "cgroup memory"},
	{name: "cgroups unmounted", root: asRoot, enter: shell("-m", noGroups, false), flags: []string{"--strict"}, knob: groupsKnob, seen: []string{groupsKnob}, layer: "cgroup memory"},
	{name: "cgroups hidden", root: asPlain, enter: shell("-Urm", hideGroups, false), flags: []string{"--strict"}, knob: groupsKnob, seen: []string{groupsKnob}, layer: "cgroup memory"},
	{name: "cgroups read-only", root: asRoot, enter: shell("-m", "for d in /sys/fs/cgroup /sys/fs/cgroup/*; do mountpoint -q $d && mount -o remount,bind,ro $d || true; done", false),
		flags: []string{"--strict"}, knob: "a read-only cgroup file system", seen: []string{"a read-only cgroup file system"}, layer: "cgroup memory"},
	{name: "root without the capability", root: asRoot, enter: ifObstacle("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"),
		knob: "CAP_SYS_ADMIN", seen: []string{"root without CAP_SYS_ADMIN"}, layer: "namespaces"},
	{name: "root of a namespace", root: asRoot, enter: ifObstacle("unshare", "-Ur"), knob: "a user namespace whose root is the host's root",
		seen: []string{"root of a user namespace that is the host's root"}, layer: "identity"},
	{name: "chroot", root: asPlain, enter: shell("-m", enterChroot, true), knob: "a chroot", seen: []string{"inside a chroot"}, layer: "user namespaces"},
	{name: "chroot", root: asRoot, enter: shell("-m", enterChroot, false), knob: "a chroot", seen: []string{"inside a chroot"}, layer: "user namespaces"},
}

func TestHostile(t *testing.T) {
	for _, h := range environments {
		who := map[bool]string{asRoot: "root", asPlain: "plain user"}[h.root]
		t.Run(h.name+" as "+who, func(t *testing.T) {
			p := newPlace(t, h.root)
			if h.name == "no cgroup of the user's own" {
				needNoGroup(t, p)
			}
			h.control(t, p)
			h.refused(t, p)
			h.diagnosed(t, p)
		})
	}
}

// needNoGroup: on some hosts a user has cgroups that limit memory.
func needNoGroup(t *testing.T, p *place) {
	d := p.diagnose(t, p.as(codespace("doctor", "--json")...))
	need.Feature(t, "no-delegated-cgroup", find(d.Layers, "cgroup memory").State == "missing", "this user has a memory cgroup")
}

const marker = "ran"

// control shows that all works without the obstacle.
func (h hostile) control(t *testing.T, p *place) {
	t.Helper()
	r := p.do(t, h.enter(t, p, false, codespace("run", "--", "touch", marker)))
	if _, err := os.Stat(p.file("ws/" + marker)); r.code != 0 || err != nil {
		t.Fatalf("control: run exits %d: %s", r.code, r.stderr)
	}
	must(t, os.Remove(p.file("ws/"+marker)))
	d := p.diagnose(t, h.enter(t, p, false, codespace("doctor", "--json")))
	if !d.CanRun {
		t.Fatalf("control: doctor says %+v", d.Proof.Error)
	}
	for _, c := range d.Circumstances {
		if c.State == "in the way" {
			t.Errorf("control: doctor names %+v", c)
		}
	}
}

// refused wants run to refuse and to name the knob.
func (h hostile) refused(t *testing.T, p *place) {
	t.Helper()
	args := append(append([]string{"run"}, h.flags...), "--", "touch", marker)
	r := p.do(t, h.enter(t, p, true, codespace(args...)))
	if r.code != 125 || !strings.Contains(r.stderr, "SANDBOX_UNAVAILABLE") || !strings.Contains(r.stderr, "in the way: "+h.knob+" (") {
		t.Errorf("run exits %d, want 125 and %q in the way: %s", r.code, h.knob, r.stderr)
	}
	if _, err := os.Stat(p.file("ws/" + marker)); err == nil {
		t.Error("the command ran")
	}
}

// diagnosed wants doctor to name the same knob, and what is around.
func (h hostile) diagnosed(t *testing.T, p *place) {
	t.Helper()
	d := p.diagnose(t, h.enter(t, p, true, codespace(append([]string{"doctor", "--json"}, h.flags...)...)))
	if d.CanRun || d.Strength != "none" || d.Proof.Error == nil {
		t.Fatalf("doctor says that commands can run: %+v", d.Proof)
	}
	if e := d.Proof.Error; e.Knob != h.knob || e.Show == "" || e.Fix == "" || e.Code != "SANDBOX_UNAVAILABLE" {
		t.Errorf("doctor says %+v, want %q in the way", e, h.knob)
	}
	if l := find(d.Layers, h.layer); l.State != "missing" || l.Knob != h.knob {
		t.Errorf("layer %+v, want it missing for %q", l, h.knob)
	}
	for _, name := range h.seen {
		if find(d.Circumstances, name).Name == "" {
			t.Errorf("circumstances %+v, want %q among them", d.Circumstances, name)
		}
	}
	text := p.do(t, h.enter(t, p, true, codespace(append([]string{"doctor"}, h.flags...)...)))
	first, _, _ := strings.Cut(text.stdout, "\n")
	if text.code != 1 || !strings.Contains(first, "CANNOT run") || !strings.Contains(first, h.knob) {
		t.Errorf("doctor exits %d and begins with %q", text.code, first)
	}
}
