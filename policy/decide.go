package policy

import "fmt"

// ActionKind is what a client wants to do in a workspace.
type ActionKind string

const (
	Inspect   ActionKind = "inspect"    // learn its identity and policy
	Execute   ActionKind = "execute"    // run a command
	ReadFiles ActionKind = "read-files" // read, find, version
	Patch     ActionKind = "patch"      // apply a patch
)

// Action is all of a client's request that a decision depends on.
type Action struct {
	Kind   ActionKind
	Access Access // "" asks for the most that workspace and kind permit
}

// Grant is a permitted action: the workspace exactly as registered, the access
// it is permitted with, and the digest by which the runner knows the workspace.
type Grant struct {
	Workspace Workspace
	Access    Access
	Digest    string
}

// Denied is a refused action. Its text holds no path of the host.
type Denied struct {
	Code   string // UNAUTHORIZED or RUNNER_UNAVAILABLE
	Reason string
	Next   string
}

func (d *Denied) Error() string { return d.Code + ": " + d.Reason + "; " + d.Next }

// Decide says whether w permits a. It is pure, and the only thing an action can
// change about the grant is a lower access. The error is a *Denied.
func Decide(w Workspace, a Action) (Grant, error) {
	if d := unavailable(w, a.Kind); d != nil {
		return Grant{}, d
	}
	access, d := permitted(w, a)
	if d != nil {
		return Grant{}, d
	}
	return Grant{Workspace: w, Access: access, Digest: w.Digest()}, nil
}

// unavailable denies what needs an environment that is not built. Inspecting
// needs none: that is how a client learns of it.
func unavailable(w Workspace, kind ActionKind) *Denied {
	if kind == Inspect || w.Environment.Kind == KindHost {
		return nil
	}
	return &Denied{
		Code:   "RUNNER_UNAVAILABLE",
		Reason: fmt.Sprintf("environment %s of kind %s is not available yet", w.Environment.Name, w.Environment.Kind),
		Next:   "use a workspace in an environment of kind host",
	}
}

// permitted is the access that w grants a.
func permitted(w Workspace, a Action) (Access, *Denied) {
	least, most, known := span(a.Kind)
	if !known {
		return "", unauthorized("an action of kind %q is unknown", a.Kind)
	}
	asked := a.Access
	if asked == "" {
		asked = lower(w.Access, most)
	}
	switch {
	case rank(asked) == 0:
		return "", unauthorized("access %q is unknown", asked)
	case rank(asked) > rank(w.Access):
		return "", unauthorized("profile %s does not permit %s access", w.Profile, asked)
	case rank(asked) > rank(most):
		return "", unauthorized("%s takes no %s access", a.Kind, asked)
	case rank(asked) < rank(least):
		return "", unauthorized("%s needs %s access and would have %s (profile %s)", a.Kind, least, asked, w.Profile)
	}
	return asked, nil
}

// span is the least access a kind of action needs and the most it can use.
func span(kind ActionKind) (least, most Access, known bool) {
	switch kind {
	case Inspect, ReadFiles:
		return AccessRead, AccessRead, true
	case Execute:
		return AccessRead, AccessWrite, true
	case Patch:
		return AccessWrite, AccessWrite, true
	}
	return "", "", false
}

// rank orders accesses; an unknown one is below all.
func rank(a Access) int {
	switch a {
	case AccessRead:
		return 1
	case AccessWrite:
		return 2
	}
	return 0
}

func lower(a, b Access) Access {
	if rank(a) < rank(b) {
		return a
	}
	return b
}

func unauthorized(format string, facts ...any) *Denied {
	return &Denied{
		Code:   "UNAUTHORIZED",
		Reason: fmt.Sprintf(format, facts...),
		Next:   "ask for less, or use a workspace whose profile permits it",
	}
}
