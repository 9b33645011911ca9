package policy

import (
	"os"
	"path/filepath"
	"strings"
)

// area is a part of the host's file system that must not be handed out.
type area struct {
	location
	what string // what is there, for errors
	next string // what to do instead
	deep bool   // nothing beneath it may be handed out either
}

// ground knows which parts of the host a workspace or a mount must not touch.
type ground struct {
	roots  []area // for workspaces
	mounts []area // for mounts
}

const (
	moveProject = "move the project to a directory of its own, such as /srv/NAME, and name that"
	pickBeneath = "name only the directory beneath it that is needed"
	leaveOut    = "leave it out: the sandbox has its own"
)

// hostGround is the ground of this host for an operator whose home is home.
func hostGround(home string) *ground {
	g := &ground{}
	for _, dir := range []string{"/", "/tmp", "/run", "/home", sandboxHome} {
		g.refuse(areaAt(dir, "shared by the whole host, or the sandbox's own", pickBeneath, false))
	}
	for _, dir := range homes(home) {
		g.refuse(areaAt(dir, "a home directory itself, with its keys and tokens", pickBeneath, false))
	}
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		g.roots = append(g.roots, areaAt(dir, "the kernel's own", moveProject, true)...)
		g.mounts = append(g.mounts, areaAt(dir, "the kernel's own", leaveOut, true)...)
	}
	system := []string{"/usr", "/etc", "/boot", "/bin", "/sbin"}
	libraries, _ := filepath.Glob("/lib*") // the pattern is well formed
	for _, dir := range append(system, libraries...) {
		g.roots = append(g.roots, areaAt(dir, "a system directory", moveProject, true)...)
	}
	g.roots = append(g.roots, areaAt("/var", "the host's state", moveProject, false)...)
	g.mounts = append(g.mounts, areaAt("/etc", "the host's accounts and keys", pickBeneath, false)...)
	return g
}

// refuse keeps areas from workspaces and mounts alike.
func (g *ground) refuse(areas []area) {
	g.roots = append(g.roots, areas...)
	g.mounts = append(g.mounts, areas...)
}

// areaAt is the area at dir, or none where dir cannot be reached: then nobody
// can name it either.
func areaAt(dir, what, next string, deep bool) []area {
	at, f := prospect(dir)
	if f != nil {
		return nil
	}
	return []area{{location: at, what: what, next: next, deep: deep}}
}

// clear says why at must not be handed out, or nil.
func clear(at location, areas []area, unsafePath string) *flaw {
	for _, a := range areas {
		position := ""
		switch {
		case at.within(a.location) && a.within(at):
			position = "is"
		case a.within(at):
			position = "contains"
		case a.deep && at.within(a.location):
			position = "lies in"
		default:
			continue
		}
		return &flaw{
			found: quote(unsafePath) + ", which " + position + " " + a.path + " (" + a.what + ")",
			next:  a.next,
		}
	}
	return nil
}

// homes are the home directories of people: root's, those under /home, and the
// operator's own.
func homes(own string) []string {
	result := []string{"/root"}
	if filepath.IsAbs(own) {
		result = append(result, own)
	}
	accounts, _ := os.ReadFile("/etc/passwd") // unreadable: /home as a whole is refused all the same
	for line := range strings.Lines(string(accounts)) {
		fields := strings.Split(line, ":")
		if len(fields) >= 6 && strings.HasPrefix(fields[5], "/home/") {
			result = append(result, filepath.Clean(fields[5]))
		}
	}
	return result
}
