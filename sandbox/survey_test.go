package sandbox_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"codespace/sandbox"
)

const (
	plainProc = "21 1 0:20 / /proc rw,nosuid - proc proc rw\n"
	// As Docker 24 leaves it.
	dockerMounts = `600 500 0:50 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/l,upperdir=/u
601 600 0:53 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
602 600 0:54 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
605 600 0:24 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw
611 601 0:53 /bus /proc/bus ro,nosuid,nodev,noexec,relatime - proc proc rw
612 601 0:57 / /proc/acpi ro,relatime - tmpfs tmpfs ro
613 601 0:54 /null /proc/kcore rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
`
	systemdMounts = `25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
26 25 0:23 / /proc rw,nosuid,nodev,noexec,relatime shared:12 - proc proc rw
34 26 0:31 / /proc/sys/fs/binfmt_misc rw,relatime shared:16 - autofs systemd-1 rw,fd=29
60 34 0:44 / /proc/sys/fs/binfmt_misc rw,nosuid - binfmt_misc binfmt_misc rw
30 25 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
`
	v1Mounts = `30 22 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
34 30 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
39 30 0:36 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
`
	v2Over       = "50 30 0:37 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	hybridMounts = v1Mounts + "40 30 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)

// TestProcView: a new /proc may be mounted exactly where one is whole and writable
// (fs/namespace.c, mount_too_revealing); tests/doctor shows that of a real kernel.
func TestProcView(t *testing.T) {
	for _, c := range []struct {
		name, mountinfo string
		whole, readOnly bool
		masks           []string
	}{
		{"plain", plainProc, true, false, nil},
		{"a systemd host: automount on a directory that is always empty", systemdMounts, true, false, nil},
		{"docker", dockerMounts, false, false, []string{"/proc/bus", "/proc/acpi", "/proc/kcore"}},
		{"read-only", strings.Replace(plainProc, "rw,nosuid", "ro,nosuid", 1), false, true, nil},
		{"read-only as a whole", strings.Replace(plainProc, "proc rw", "proc ro", 1), false, true, nil},
		{"under a read-only one", plainProc + "22 21 0:20 / /proc ro - proc proc rw\n", false, true, nil},
		{"mounted over", plainProc + "22 21 0:30 / /proc rw - tmpfs tmpfs rw\n", false, false, []string{"/proc"}},
		{"masked, and a whole one elsewhere", dockerMounts + "700 600 0:80 / /mnt/proc rw - proc proc rw\n", true, false, []string{"/proc/bus", "/proc/acpi", "/proc/kcore"}},
		{"none", "25 1 8:1 / / rw - ext4 /dev/sda1 rw\nnonsense\n", false, false, nil},
	} {
		whole, readOnly, masks := sandbox.ProcView(c.mountinfo)
		if whole != c.whole || readOnly != c.readOnly || !slices.Equal(masks, c.masks) {
			t.Errorf("%s: whole %v, read-only %v, masks %q", c.name, whole, readOnly, masks)
		}
	}
}

func TestRootKind(t *testing.T) {
	for mountinfo, want := range map[string]string{dockerMounts: "overlay", systemdMounts: "ext4", plainProc: "", "25 1 8:1 / / rw - ext4 a rw\n26 25 0:9 / / rw - tmpfs b rw\n": "tmpfs"} {
		if got := sandbox.RootKind(mountinfo); got != want {
			t.Errorf("root is %q, want %q", got, want)
		}
	}
}

// TestGroupDir: where libcontainer makes cgroups.
func TestGroupDir(t *testing.T) {
	const v1 = "4:memory:/user/a\n3:cpu,cpuacct:/b\n1:name=systemd:/c\n0::/d\n"
	for _, c := range []struct{ name, mountinfo, cgroup, controller, kind, dir string }{
		{"v2: beside this process's own", systemdMounts, "0::/user.slice/user-1000.slice/session-1.scope\n", "memory", "v2", "/sys/fs/cgroup/user.slice/user-1000.slice"},
		{"v2: kill", systemdMounts, "0::/a/b\n", "", "v2", "/sys/fs/cgroup/a"},
		{"v2: in the root", systemdMounts, "0::/\n", "pids", "v2", "/sys/fs/cgroup"},
		{"docker", dockerMounts, "0::/\n", "memory", "v2", "/sys/fs/cgroup"},
		{"v1: below its own", v1Mounts, v1, "memory", "v1", "/sys/fs/cgroup/memory/user/a"},
		{"v1: two controllers", v1Mounts, v1, "cpu", "v1", "/sys/fs/cgroup/cpu,cpuacct/b"},
		{"v1: none", v1Mounts, v1, "pids", "v1", ""},
		{"v1: kill", v1Mounts, v1, "", "v1", ""},
		{"hybrid", hybridMounts, v1, "memory", "hybrid", "/sys/fs/cgroup/memory/user/a"},
		{"hybrid: kill", hybridMounts, v1, "", "hybrid", "/sys/fs/cgroup/unified"},
		{"v1: a part is mounted", "34 30 0:31 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "4:memory:/docker/x/y\n", "memory", "v1", "/sys/fs/cgroup/memory/y"},
		{"v2 over v1", hybridMounts + v2Over, v1, "memory", "v2", "/sys/fs/cgroup"},
		{"v2 over v1: kill", hybridMounts + v2Over, v1, "", "v2", "/sys/fs/cgroup"},
		{"none", plainProc, "", "memory", "none", ""},
	} {
		if kind, dir := sandbox.GroupDir(c.mountinfo, c.cgroup, c.controller); kind != c.kind || dir != c.dir {
			t.Errorf("%s: %s %q, want %s %q", c.name, kind, dir, c.kind, c.dir)
		}
	}
}

// TestNoGroups: libcontainer finds its way by a v2 hierarchy where all look for it,
// or by v1's for devices.
func TestNoGroups(t *testing.T) {
	const absent, partial = "no cgroup file system is mounted", "none of them is for devices, and without that one no other can be used"
	devices := "41 30 0:38 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n"
	named := "39 30 0:36 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
	for _, c := range []struct{ name, mountinfo, cgroup, want string }{
		{"none", plainProc, "0::/\n", absent},
		{"none of this kernel's", plainProc, "", absent},
		{"v2", systemdMounts, "0::/a/b\n", ""},
		{"v2 elsewhere", strings.ReplaceAll(systemdMounts, "/sys/fs/cgroup", "/mnt"), "0::/a/b\n", absent},
		{"v1", v1Mounts + devices, "5:devices:/\n4:memory:/\n", ""},
		{"v1 elsewhere", strings.ReplaceAll(v1Mounts+devices, "/sys/fs/cgroup", "/dev/cgroup"), "5:devices:/\n4:memory:/\n", ""},
		{"v1 without devices", v1Mounts, "4:memory:/\n", partial},
		{"hybrid", hybridMounts + devices, "5:devices:/\n4:memory:/\n0::/\n", ""},
		{"hybrid without devices", hybridMounts, "4:memory:/\n0::/\n", partial},
		{"v2 over v1", v1Mounts + v2Over, "4:memory:/\n0::/\n", ""},
		{"a named one, and v2 beside it", named + "40 30 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", "1:name=systemd:/\n0::/\n", absent},
	} {
		if got := sandbox.NoGroups(c.mountinfo, c.cgroup); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestProbesTouchNothing: a kernel without a filter refuses each call for what it
// asks, not for who asks.
func TestProbesTouchNothing(t *testing.T) {
	if refused := sandbox.RefusedCalls(); refused != "" {
		t.Errorf("refused: %s", refused)
	}
}

func TestSurveyIsComplete(t *testing.T) {
	layers, circumstances := (sandbox.Host{}).Survey()
	if len(layers) != 15 {
		t.Errorf("%d layers", len(layers))
	}
	for _, f := range append(layers, circumstances...) {
		if f.Name == "" || f.State == "" || f.Strength == "" || f.Show == "" {
			t.Errorf("finding %+v is not complete", f)
		}
	}
}

// TestRemedyIsNeverVague: each kind of failure names a knob, a command and a fix.
func TestRemedyIsNeverVague(t *testing.T) {
	for _, f := range []sandbox.Failure{
		{Step: "user namespace", Errno: int(syscall.ENOSPC)}, {Step: "user namespace", Errno: int(syscall.EPERM)},
		{Step: "user namespace", Errno: int(syscall.EUSERS)}, {Step: "user namespace map", Errno: int(syscall.EROFS)},
		{Step: "mount namespace", Errno: int(syscall.EPERM)}, {Step: "cell namespaces", Errno: int(syscall.ENOSYS)},
		{Step: "container", Errno: int(syscall.EPERM), Reason: `error mounting "proc" to rootfs at "/proc": operation not permitted`},
		{Step: "container", Reason: "no cgroup mount found in mountinfo"}, {Step: "cgroup", Reason: "enforcement is strict"},
		{Step: "container", Errno: int(syscall.ENOENT), Reason: "openat2 /sys/fs/cgroup/x/init/cpu.weight"},
		{Step: "id-mapped mount", Errno: int(syscall.EINVAL)}, {Step: "identity"},
		{Step: "factory socket", Errno: int(syscall.EMFILE)}, {Step: "container", Errno: int(syscall.ENOMEM)},
	} {
		if r := f.Remedy(); r.Knob == "" || r.Show == "" || r.Fix == "" {
			t.Errorf("%v: %+v", &f, r)
		}
	}
	if r := (&sandbox.Failure{Step: "workspace", Reason: "it was replaced"}).Remedy(); r.Knob != "" || !strings.Contains(r.String(), "codespace doctor") {
		t.Errorf("a failure that is not the host's: %q", r)
	}
}
