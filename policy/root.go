package policy

import (
	"io/fs"
	"strconv"
	"syscall"
)

// root is the rule for a workspace's root directory: it hands out a project and
// nothing else.
func (g *ground) root() rule[string, location] {
	const allowed = "an existing directory that neither is, holds nor lies in a system directory or the state or socket directory, " +
		"and neither is nor holds a home directory"
	return rule[string, location]{allowed, func(unsafePath string) (location, *flaw) {
		at, f := locate(unsafePath)
		if f != nil {
			return location{}, f
		}
		if !at.self().IsDir() {
			return location{}, &flaw{
				found: quote(unsafePath) + ", which is not a directory",
				next:  "name the directory that holds the project",
			}
		}
		return at, clear(at, g.roots, unsafePath)
	}}
}

// apart says why a root cannot be registered beside another, or nil: one could
// then change what the other protects, without the other's lease.
func apart(at location, other claim) *flaw {
	if !at.within(other.location) && !other.within(at) {
		return nil
	}
	return &flaw{
		found:   quote(at.path) + ", which overlaps " + quote(other.path) + " of workspace " + other.id,
		allowed: "roots of which none is, holds or lies in another",
		next:    "register only the outer one, or move one of them",
	}
}

// owned says why a root cannot lend its owner to commands, or nil.
func owned(at location) *flaw {
	if !at.found || owner(at.self()) != 0 {
		return nil
	}
	return &flaw{
		found:   strconv.Quote(identityOwner) + " for a root that belongs to uid 0",
		allowed: `"owner" where an ordinary user owns the root, else "mapped"`,
		next:    `chown the directory, or use "mapped"`,
	}
}

func owner(info fs.FileInfo) uint32 {
	return info.Sys().(*syscall.Stat_t).Uid // always so on Linux
}
