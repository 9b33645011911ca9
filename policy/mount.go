package policy

import (
	"os"
	"path/filepath"
)

const maxMounts = 64

// readOnly is the rule for a mount's access.
var readOnly = rule[string, Access]{`"read"`, func(written string) (Access, *flaw) {
	switch Access(written) {
	case AccessRead:
		return AccessRead, nil
	case AccessWrite:
		return "", &flaw{
			found: `"write", which would let a command change the host outside its workspace`,
			next:  "register the directory as a workspace, or use a cache",
		}
	default:
		return "", &flaw{next: `write "read" or leave it out`}
	}
}}

// mount is the rule for a path that sandboxes see read-only.
func (g *ground) mount() rule[string, location] {
	const allowed = "an existing file or directory that neither is nor holds a home directory, the state or socket directory, " +
		"/etc, /run, /tmp or a file system of the kernel"
	return rule[string, location]{allowed, func(unsafePath string) (location, *flaw) {
		at, f := locate(unsafePath)
		if f != nil {
			return location{}, f
		}
		if mode := at.self().Mode(); !mode.IsRegular() && !mode.IsDir() {
			return location{}, &flaw{
				found: quote(unsafePath) + ", which is a " + kindOf(mode),
				next:  "leave it out",
			}
		}
		if f := clear(at, g.mounts, unsafePath); f != nil {
			return location{}, f
		}
		// A link in it could be one that a command made, to show the next one more.
		if filepath.Clean(unsafePath) != at.path {
			return location{}, &flaw{
				found: quote(unsafePath) + ", which goes through a link",
				next:  "write the path it leads to, if that is what you mean: " + quote(at.path),
			}
		}
		return at, nil
	}}
}

// once says why at cannot be mounted beside the others, or nil.
func once(at location, others []location) *flaw {
	for _, other := range others {
		if os.SameFile(at.self(), other.self()) {
			return &flaw{
				found:   quote(at.path) + ", which is mounted already as " + quote(other.path),
				allowed: "each path once",
				next:    "remove one",
			}
		}
	}
	return nil
}

// mounts reads a profile's list of mounts.
func (l *loader) mounts(s setting) []Mount {
	var places []location
	for _, item := range s.items(maxMounts, `tables such as { path = "/opt/sdk", access = "read" }`) {
		if !item.table("path", "access") {
			continue
		}
		access := AccessRead
		take(item.get("access"), readOnly, &access)
		var at location
		if !require(item.get("path"), l.ground.mount(), &at) {
			continue
		}
		if f := once(at, places); f != nil {
			item.get("path").reject(f)
			continue
		}
		places = append(places, at)
	}
	return mountsAt(places)
}

func mountsAt(places []location) []Mount {
	mounts := make([]Mount, len(places))
	for i, at := range places {
		mounts[i] = Mount{Path: at.path}
	}
	return mounts
}
