package policy_test

import (
	"reflect"
	"regexp"
	"testing"

	"codespace/policy"
)

func whole() policy.Workspace {
	w := in(policy.AccessWrite, policy.KindHost)
	w.Protected = []string{".git/hooks"}
	w.Mounts = []policy.Mount{{Path: "/opt/sdk"}}
	w.Caches = []policy.Cache{{Name: "npm", Target: "/home/sandbox/.npm"}}
	w.Devices = []string{"/dev/kvm"}
	w.Variables = map[string]string{"CI": "1", "A": "2", "B": "3"}
	w.Identity = "mapped"
	w.Enforcement = policy.Strict
	return w
}

func TestDigestIsStable(t *testing.T) {
	digest := whole().Digest()
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(digest) {
		t.Errorf("got %q", digest)
	}
	for range 100 {
		equal(t, whole().Digest(), digest)
	}
	empty := policy.Workspace{
		Protected: []string{},
		Mounts:    []policy.Mount{},
		Caches:    []policy.Cache{},
		Devices:   []string{},
		Variables: map[string]string{},
	}
	equal(t, policy.Workspace{}.Digest(), empty.Digest())
}

// TestEveryFieldChangesTheDigest changes one leaf of a workspace after another,
// found by reflection so that a new field cannot be forgotten.
func TestEveryFieldChangesTheDigest(t *testing.T) {
	seen := map[string]string{whole().Digest(): "nothing"}
	leaves := 0
	for ; ; leaves++ {
		w := whole()
		left := leaves
		name := change(reflect.ValueOf(&w).Elem(), "Workspace", &left)
		if name == "" {
			break
		}
		digest := w.Digest()
		if other, again := seen[digest]; again {
			t.Errorf("changing %s gives the digest of changing %s", name, other)
		}
		seen[digest] = name
	}
	if fields := reflect.TypeFor[policy.Workspace]().NumField() + reflect.TypeFor[policy.Limits]().NumField(); leaves < fields {
		t.Errorf("changed %d leaves of %d fields", leaves, fields)
	}
}

// change alters the leaf number *left of v and names it; "" when there are fewer.
func change(v reflect.Value, name string, left *int) string {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if changed := change(v.Field(i), name+"."+v.Type().Field(i).Name, left); changed != "" {
				return changed
			}
		}
		return ""
	case reflect.Slice:
		if changed := change(v.Index(0), name+"[0]", left); changed != "" {
			return changed
		}
	}
	if *left--; *left >= 0 {
		return ""
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	case reflect.Map:
		v.SetMapIndex(reflect.ValueOf("NEW"), reflect.Zero(v.Type().Elem()))
	default:
		panic("teach this test about " + v.Kind().String())
	}
	return name
}
