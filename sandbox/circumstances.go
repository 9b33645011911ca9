package sandbox

import (
	"os"
	"strings"
)

// circumstances are what this process is in, by name.
func (h host) circumstances() []Finding {
	var all []Finding
	for _, find := range []func() Finding{h.inContainer, h.inSandbox, h.inUserNamespace, h.underFilter, h.underLimit, h.underSysctl, h.underModule, h.withoutGroups, h.withoutRoot} {
		if f := find(); f.Name != "" {
			all = append(all, f)
		}
	}
	return all
}

// inContainer wants two signs: an image built for a container may run on a machine
// of its own.
func (h host) inContainer() Finding {
	var signs []string
	if kind := rootKind(h.mounts); kind == "overlay" {
		signs = append(signs, "the root file system is an overlay")
	}
	for _, f := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(f); err == nil {
			signs = append(signs, f+" exists")
		}
	}
	proc := viewOfProc(h.mounts)
	if len(proc.masks) > 0 && !proc.whole {
		signs = append(signs, "/proc is masked")
	}
	if g, is := h.groups.broken(true); is && g.problem == groupReadOnly {
		signs = append(signs, "cgroups are read-only")
	}
	if len(h.denied) > 0 {
		signs = append(signs, "a filter denies "+few(h.denied))
	}
	if len(signs) < 2 {
		return Finding{}
	}
	f := Finding{Name: "inside Docker or Kubernetes", State: noted, Strength: strings.Join(signs, "; "),
		Remedy: Remedy{"a container's restrictions", "cat /proc/self/mountinfo; grep Seccomp /proc/self/status",
			"docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined --security-opt apparmor=unconfined --cap-add SYS_ADMIN " +
				"(kubernetes: seccompProfile Unconfined, procMount Unmasked), as an ordinary user or as root; limits take a writable /sys/fs/cgroup"}}
	if len(h.denied) > 0 || !proc.whole {
		f.State = inTheWay
	}
	return f
}

func (h host) inSandbox() Finding {
	if h.status["NoNewPrivs"] != "1" || !h.filtered() {
		return Finding{}
	}
	f := Finding{Name: "nested in another sandbox", State: noted, Strength: "this process has no_new_privs and " + h.status["Seccomp_filters"] + " seccomp filters of whoever started it",
		Remedy: Remedy{"the sandbox around this process", "grep -E 'Seccomp|NoNewPrivs' /proc/self/status", "start codespace outside of it"}}
	if len(h.denied)+len(h.absent) > 0 {
		f.State = inTheWay
	}
	return f
}

func (h host) inUserNamespace() Finding {
	switch {
	case !hostRoot() && startingUID() == 0:
		return Finding{Name: "root of a user namespace that is the host's root", State: inTheWay, Strength: "this user is uid 0 of the namespace around it, which may be the host", Remedy: rootOfNamespace}
	case !initialNamespace():
		return Finding{Name: "inside a user namespace", State: noted, Strength: "ids here are not the host's", Remedy: Remedy{Show: "cat /proc/self/uid_map"}}
	}
	return Finding{}
}

func (h host) underFilter() Finding {
	switch {
	case len(h.denied) > 0:
		return Finding{Name: "a seccomp filter that denies setting up", State: inTheWay, Strength: "EPERM from " + few(h.denied), Remedy: filterDenies}
	case len(h.absent) > 0 && h.filtered():
		return Finding{Name: "a seccomp filter that denies setting up", State: inTheWay, Strength: "ENOSYS from " + few(h.absent), Remedy: filterDenies}
	}
	return Finding{}
}

func (h host) underLimit() Finding {
	kind := h.spentNamespace()
	if kind == "" {
		return Finding{}
	}
	r := limitOf(kind)
	return Finding{Name: r.Knob + " is 0", State: inTheWay, Strength: "nobody here may make a " + kind + " namespace", Remedy: r}
}

func (h host) underSysctl() Finding {
	switch {
	case hostRoot():
		return Finding{}
	case sysctl("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return Finding{Name: noClone.Knob + " is 0", State: inTheWay, Strength: "only root may make user namespaces", Remedy: noClone}
	case sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return Finding{Name: "Ubuntu's AppArmor restriction", State: noted, Strength: "a user namespace gives rights only to programs whose AppArmor profile permits it", Remedy: appArmorRestricts}
	}
	return Finding{}
}

func (h host) underModule() Finding {
	if label := h.confinement(); label != "" {
		return Finding{Name: "confined by a security module", State: noted, Strength: label, Remedy: confined}
	}
	return Finding{}
}

func (h host) withoutGroups() Finding {
	g, is := h.groups.broken(hostRoot())
	if !is {
		return Finding{}
	}
	seen := string(g.problem)
	if g.dir != "" {
		seen = g.dir + ": " + seen
	}
	state := inTheWay
	if _, none := h.groups.none(); none || g.problem == groupReadOnly { // then only a strict workspace is refused
		state = noted
	}
	return Finding{Name: g.remedy().Knob, State: state, Strength: seen, Remedy: g.remedy()}
}

func (h host) withoutRoot() Finding {
	switch {
	case h.chrooted():
		return Finding{Name: "inside a chroot", State: inTheWay, Strength: "the root directory is no mount point", Remedy: inChroot}
	case hostRoot() && !h.admin:
		return Finding{Name: "root without CAP_SYS_ADMIN", State: inTheWay, Strength: "uid 0 with an effective set of " + h.status["CapEff"], Remedy: noAdmin}
	}
	return Finding{}
}
