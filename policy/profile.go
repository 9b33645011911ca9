package policy

import "slices"

// The profiles that exist without being written. Every other extends one.
const (
	profileRead  = "read-only"
	profileWrite = "workspace-write"
)

// profile is a named meaning of "allowed".
type profile struct {
	access    Access
	protected []string
	mounts    []Mount
	caches    []Cache
	variables map[string]string
	debug     bool
}

func builtinProfiles() map[string]profile {
	of := func(a Access) profile {
		return profile{
			access:    a,
			protected: slices.Clone(defaultProtected),
			mounts:    []Mount{},
			caches:    []Cache{},
			variables: map[string]string{},
		}
	}
	return map[string]profile{profileRead: of(AccessRead), profileWrite: of(AccessWrite)}
}

// workspace is a workspace with the profile's part and the defaults in it.
func (p profile) workspace() Workspace {
	return Workspace{
		Access:      p.access,
		Network:     NetworkRestricted,
		Approvals:   ApprovalsOff,
		Protected:   p.protected,
		Mounts:      p.mounts,
		Caches:      p.caches,
		Devices:     []string{},
		Variables:   p.variables,
		Debug:       p.debug,
		Identity:    identityMapped,
		Limits:      defaultLimits,
		Enforcement: Strict,
	}
}

// readProfiles reads [profiles.NAME].
func (l *loader) readProfiles() {
	table := l.doc.root().get("profiles")
	if !table.named() {
		return
	}
	for _, name := range table.names() {
		s := table.get(name)
		if name == profileRead || name == profileWrite {
			s.rejectName(&flaw{
				found:   "a built-in profile defined anew",
				allowed: "a profile of another name that extends it",
				next:    "rename it",
			})
			continue
		}
		if l.newName(s, name) {
			l.profiles[name] = l.profile(s)
		}
	}
}

func (l *loader) profile(s setting) profile {
	if !s.table("extends", "protected", "protected_extra", "mounts", "caches", "devices", "environment", "debug") {
		return profile{}
	}
	base := profileRead
	require(s.get("extends"), oneOf(profileRead, profileWrite), &base)
	p := builtinProfiles()[base]
	p.protected = l.protected(s)
	p.mounts = l.mounts(s.get("mounts"))
	p.caches = l.caches(s.get("caches"))
	p.variables = l.variables(s.get("environment"))
	take(s.get("debug"), yesOrNo, &p.debug)
	noDevices(s.get("devices"))
	return p
}

// noDevices refuses what is not enforced yet.
func noDevices(s setting) {
	array, ok := s.value.([]any)
	if s.value == nil || ok && len(array) == 0 {
		return
	}
	s.reject(&flaw{
		found:   "devices, which are not available yet",
		allowed: "an empty list",
		next:    untilThen,
	})
}
