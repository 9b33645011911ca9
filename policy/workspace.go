package policy

import (
	"fmt"
	"slices"
)

// maxWorkspaces bounds one registry: roots are compared in pairs.
const maxWorkspaces = 1024

// The identities a command can take; see Workspace.Identity.
const (
	identityMapped = "mapped"
	identityOwner  = "owner"
)

// claim is the root that a workspace has taken.
type claim struct {
	location
	id string
}

// readWorkspaces reads [workspaces.ID], in the order of the file, so that of two
// roots that overlap the later one is at fault.
func (l *loader) readWorkspaces() {
	table := l.doc.root().get("workspaces")
	if !table.named() {
		return
	}
	ids := table.names()
	if len(ids) > maxWorkspaces {
		table.reject(&flaw{
			found:   fmt.Sprintf("%d workspaces", len(ids)),
			allowed: fmt.Sprintf("at most %d", maxWorkspaces),
			next:    "register fewer",
		})
		return
	}
	l.environmentName = listed(l.environments, "environments")
	l.profileName = listed(l.profiles, "profiles")
	for _, id := range ids {
		s := table.get(id)
		known := s.table("root", "environment", "profile", "network", "egress", "approvals", "identity", "limits")
		if l.newName(s, id) && known {
			l.registry.workspaces[id] = l.workspace(id, s)
		}
	}
}

// workspace merges what the file says of one workspace with its profile, its
// environment and the defaults.
func (l *loader) workspace(id string, s setting) Workspace {
	environment, profile := hostEnvironment.Name, ""
	take(s.get("environment"), l.environmentName, &environment)
	require(s.get("profile"), l.profileName, &profile)
	w := l.profiles[profile].workspace()
	w.ID, w.Profile, w.Environment = id, profile, l.environments[environment]
	take(s.get("network"), notYet(oneOf(NetworkRestricted), NetworkEnabled), &w.Network)
	take(s.get("approvals"), notYet(oneOf(ApprovalsOff), ApprovalsConfirm, ApprovalsOperator), &w.Approvals)
	noEgress(s.get("egress"))
	w.Limits, w.Enforcement = l.limits(s.get("limits"))
	identity := take(s.get("identity"), oneOf(identityMapped, identityOwner), &w.Identity)
	at, ok := l.claim(id, s.get("root"), w.Mounts)
	w.Root = at.path
	if f := owned(at); ok && identity && w.Identity == identityOwner && f != nil {
		s.get("identity").reject(f)
	}
	return w
}

// claim takes a root for a workspace, unless another or the registry file itself
// is in the way.
func (l *loader) claim(id string, s setting, mounts []Mount) (location, bool) {
	var at location
	if !require(s, l.ground.root(), &at) {
		return location{}, false
	}
	if l.config.within(at) {
		s.reject(&flaw{
			found:   quote(at.path) + ", which holds this registry file",
			allowed: "a root without the file that says what is allowed in it",
			next:    "move the file, for example to /etc/codespace/config.toml",
		})
	}
	if slices.Contains(mounts, Mount{Path: at.path}) {
		s.reject(&flaw{
			found:   quote(at.path) + ", which the profile mounts read-only",
			allowed: "a root that is none of the profile's mounts",
			next:    "remove the mount, or use a profile that extends " + profileRead,
		})
	}
	for _, other := range l.claims {
		if f := apart(at, other); f != nil {
			s.reject(f)
			break
		}
	}
	l.claims = append(l.claims, claim{at, id})
	return at, true
}

// noEgress refuses what is not enforced yet.
func noEgress(s setting) {
	if s.value == nil {
		return
	}
	s.rejectName(&flaw{
		found:   "egress, which is not available yet",
		allowed: `network = "restricted" without egress`,
		next:    untilThen,
	})
}
