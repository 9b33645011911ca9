package sandbox

import (
	"os"
	"slices"
	"strings"
)

// mounted is one mount of this mount namespace (proc_pid_mountinfo(5)).
type mounted struct {
	id, parent  string
	root, point string
	kind        string   // of the file system
	options     []string // of the file system; a v1 cgroup's controllers are among them
	readOnly    bool
}

func readMounts() []mounted {
	b, _ := os.ReadFile("/proc/self/mountinfo") // no /proc, no mounts: the layers say so
	return parseMounts(string(b))
}

func parseMounts(text string) []mounted {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var all []mounted
	for line := range strings.Lines(text) {
		own, fs, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(own), strings.Fields(fs)
		if !ok || len(f) < 6 || len(g) < 3 {
			continue
		}
		m := mounted{id: f[0], parent: f[1], root: unescape.Replace(f[3]), point: unescape.Replace(f[4]), kind: g[0], options: strings.Split(g[2], ",")}
		m.readOnly = slices.Contains(strings.Split(f[5], ","), "ro") || slices.Contains(m.options, "ro")
		all = append(all, m)
	}
	return all
}

// emptyForGood are directories of a /proc that hold nothing, so that a mount
// there hides nothing (proc_create_mount_point, register_sysctl_mount_point).
var emptyForGood = []string{"/sys/fs/binfmt_misc", "/fs/nfsd", "/openprom", "/xen"}

// procView is what a new /proc depends on: the kernel lets a user namespace mount
// one only while its mount namespace holds one that is whole and writable
// (fs/namespace.c, mount_too_revealing).
type procView struct {
	whole    bool
	readOnly bool
	masks    []string // mounts that hide a part of it
}

func viewOfProc(all []mounted) procView {
	var v procView
	for _, m := range all {
		if m.kind != "proc" || m.root != "/" {
			continue
		}
		over := mountsOver(m, all)
		v.whole = v.whole || !m.readOnly && len(over) == 0
		v.readOnly = v.readOnly || m.readOnly
		for _, o := range over {
			if o.kind != "proc" || o.point != m.point { // another /proc is judged by itself
				v.masks = append(v.masks, o.point)
			}
		}
	}
	return v
}

// mountsOver are the mounts on a /proc that hide something of it.
func mountsOver(proc mounted, all []mounted) []mounted {
	var over []mounted
	for _, m := range all {
		if m.parent == proc.id && m.id != proc.id && !slices.Contains(emptyForGood, strings.TrimPrefix(m.point, proc.point)) {
			over = append(over, m)
		}
	}
	return over
}

// rootKind is the type of the root file system, "" inside a chroot: its root is
// no mount point.
func rootKind(all []mounted) string {
	kind := ""
	for _, m := range all {
		if m.point == "/" {
			kind = m.kind
		}
	}
	return kind
}
