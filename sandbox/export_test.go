package sandbox

import "strings"

// What the tests of this package ask about mountinfo and cgroup texts that this
// host does not have.

// ProcView tells how a mountinfo's /proc is: whole, read-only, and its masks.
func ProcView(mountinfo string) (whole, readOnly bool, masks []string) {
	v := viewOfProc(parseMounts(mountinfo))
	return v.whole, v.readOnly, v.masks
}

// RootKind is the type of a mountinfo's root file system.
func RootKind(mountinfo string) string { return rootKind(parseMounts(mountinfo)) }

// GroupDir is the kind of hierarchies and where a controller's cgroups are made.
func GroupDir(mountinfo, cgroup, controller string) (kind, dir string) {
	h := hierarchiesOf(parseMounts(mountinfo), cgroup)
	return h.kind, h.of(controller).dir
}

// NoGroups is why a sandbox would have to do without cgroups, as far as the two texts
// tell.
func NoGroups(mountinfo, cgroup string) string {
	if g, is := hierarchiesOf(parseMounts(mountinfo), cgroup).broken(false); is && g.dir == "" {
		return string(g.problem)
	}
	return ""
}

// RefusedCalls names the calls that building needs and this process is refused.
func RefusedCalls() string {
	denied, absent := refusedCalls(false)
	return strings.Join(append(denied, absent...), " ")
}
