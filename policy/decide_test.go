package policy_test

import (
	"errors"
	"reflect"
	"testing"

	"codespace/policy"
)

// in is a workspace with that access in an environment of that kind.
func in(access policy.Access, kind policy.Kind) policy.Workspace {
	return policy.Workspace{
		ID:          "site",
		Root:        "/srv/site",
		Environment: policy.Environment{Name: "env", Kind: kind},
		Profile:     "ci",
		Access:      access,
		Network:     policy.NetworkRestricted,
		Approvals:   policy.ApprovalsOff,
		Limits:      defaults,
	}
}

func TestDecide(t *testing.T) {
	const (
		none  = policy.Access("")
		read  = policy.AccessRead
		write = policy.AccessWrite
	)
	cases := []struct {
		most    policy.Access
		kind    policy.ActionKind
		asked   policy.Access
		granted policy.Access // none: denied
	}{
		{write, policy.Execute, none, write},
		{write, policy.Execute, write, write},
		{write, policy.Execute, read, read},
		{write, policy.Execute, "WRITE", none},
		{write, policy.Execute, "read ", none},
		{read, policy.Execute, none, read},
		{read, policy.Execute, read, read},
		{read, policy.Execute, write, none},
		{write, policy.Patch, none, write},
		{write, policy.Patch, write, write},
		{write, policy.Patch, read, none},
		{read, policy.Patch, none, none},
		{read, policy.Patch, read, none},
		{read, policy.Patch, write, none},
		{write, policy.ReadFiles, none, read},
		{write, policy.ReadFiles, read, read},
		{write, policy.ReadFiles, write, none},
		{read, policy.ReadFiles, none, read},
		{read, policy.Inspect, none, read},
		{read, policy.Inspect, write, none},
		{write, "", none, none},
		{write, "EXECUTE", none, none},
		{none, policy.Execute, none, none},
		{none, policy.Inspect, none, none},
		{"admin", policy.Execute, none, none},
		{"admin", policy.Execute, read, none},
	}
	for _, c := range cases {
		grant, err := policy.Decide(in(c.most, policy.KindHost), policy.Action{Kind: c.kind, Access: c.asked})
		if grant.Access != c.granted {
			t.Errorf("%+v: granted %q", c, grant.Access)
		}
		var denied *policy.Denied
		if wrong := errors.As(err, &denied) != (c.granted == none); wrong || denied != nil && denied.Code != "UNAUTHORIZED" {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

func TestDenialSaysWhatHappenedAndWhatToDo(t *testing.T) {
	_, err := policy.Decide(in(policy.AccessRead, policy.KindHost), policy.Action{Kind: policy.Patch})
	says(t, err.Error(), "UNAUTHORIZED: patch needs write access", "profile ci", "; ask for less")
	_, err = policy.Decide(in(policy.AccessWrite, policy.KindRemote), policy.Action{Kind: policy.Execute})
	says(t, err.Error(), "RUNNER_UNAVAILABLE: environment env of kind remote is not available yet; ")
}

func TestEnvironmentsThatAreNotBuiltAreUnavailable(t *testing.T) {
	for _, kind := range []policy.Kind{policy.KindContainer, policy.KindRemote, "", "vm"} {
		w := in(policy.AccessWrite, kind)
		for _, action := range []policy.ActionKind{policy.Execute, policy.ReadFiles, policy.Patch, "junk"} {
			_, err := policy.Decide(w, policy.Action{Kind: action})
			var denied *policy.Denied
			if !errors.As(err, &denied) || denied.Code != "RUNNER_UNAVAILABLE" {
				t.Errorf("%s in %q: got %v", action, kind, err)
			}
		}
		if _, err := policy.Decide(w, policy.Action{Kind: policy.Inspect}); err != nil {
			t.Errorf("inspect in %q: %v", kind, err)
		}
	}
}

// TestNoArgumentWidensADecision tries every action on every workspace.
func TestNoArgumentWidensADecision(t *testing.T) {
	accesses := []policy.Access{"", policy.AccessRead, policy.AccessWrite, "admin", "read,write", "\x00", "Write"}
	kinds := []policy.ActionKind{"", policy.Inspect, policy.Execute, policy.ReadFiles, policy.Patch, "exec", "sudo"}
	environments := []policy.Kind{"", policy.KindHost, policy.KindContainer, policy.KindRemote, "HOST"}
	rank := map[policy.Access]int{policy.AccessRead: 1, policy.AccessWrite: 2}
	for _, most := range accesses {
		for _, environment := range environments {
			w := in(most, environment)
			for _, kind := range kinds {
				for _, asked := range accesses {
					grant, err := policy.Decide(w, policy.Action{Kind: kind, Access: asked})
					switch {
					case err != nil:
						equal(t, grant, policy.Grant{})
					case rank[grant.Access] == 0 || rank[grant.Access] > rank[most]:
						t.Errorf("%q asked as %q on %q: granted %q", kind, asked, most, grant.Access)
					case asked != "" && grant.Access != asked:
						t.Errorf("%q asked as %q on %q: granted %q", kind, asked, most, grant.Access)
					case environment != policy.KindHost && kind != policy.Inspect:
						t.Errorf("%q granted in environment of kind %q", kind, environment)
					case !reflect.DeepEqual(grant.Workspace, w) || grant.Digest != w.Digest():
						t.Errorf("%q asked as %q on %q: the workspace changed", kind, asked, most)
					}
				}
			}
		}
	}
}
