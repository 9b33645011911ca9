package patch

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"codespace/openat2fs"
	"codespace/runner/patching"
)

// A patch has no work in a repository's own directory: many a file there says where
// configuration and hooks are found.
func TestNothingOfTheRepositoryIsPatched(t *testing.T) {
	r := newRig(t, t.TempDir())
	for _, c := range []struct {
		protected []string
		path      string
		code      string
	}{
		{[]string{".git/config"}, ".git/commondir", "PATH_PROTECTED"},
		{[]string{".git/config"}, ".git/modules/libs/foo/hooks/post-checkout", "PATH_PROTECTED"},
		{[]string{".git/config"}, ".git/objects/info/alternates", "PATH_PROTECTED"},
		{[]string{".git/config"}, ".GIT/x", "PATH_PROTECTED"},
		{[]string{".git/config"}, ".git", "PATH_PROTECTED"},
		{[]string{".git/config"}, ".github/x", ""},
		{[]string{".git/config"}, "sub/.git/commondir", ""},
		{[]string{".envrc"}, ".git/commondir", ""}, // the operator's list has nothing of it
		{[]string{".envrc"}, ".envrc", "PATH_PROTECTED"},
		{nil, ".codespace-tmp-ABCDEFGHIJKLMNOPQRSTUVWXYZ", "INVALID_PATCH"}, // find would not show it
		{nil, "a/.codespace-tmp-x", "INVALID_PATCH"},
	} {
		h := r.helper()
		h.protected = c.protected
		_, err := h.planned(context.Background(), fmt.Appendf(nil, "*** Begin Patch\n*** Add File: %s\n+x\n*** End Patch\n", c.path), nil)
		var f *patching.Fault
		if errors.As(err, &f); (c.code == "") != (err == nil) || f != nil && f.Code != c.code {
			t.Errorf("%s with %q: %v, want %q", c.path, c.protected, err, c.code)
		}
		h.end()
	}
}

// The version that was expected is that of the content which the plan was made for, and
// a path may be written in both as the patch format has it.
func TestExpectedVersions(t *testing.T) {
	r := newRig(t, t.TempDir())
	r.put("a", former)
	for _, c := range []struct{ path, version, code string }{
		{"a", version(former), ""}, {"./a", version(former), ""}, {"b", openat2fs.Absent, ""}, {".//b", openat2fs.Absent, ""},
		{"a", version(other), "VERSION_CONFLICT"}, {"./a", openat2fs.Absent, "VERSION_CONFLICT"}, {"b", version(former), "VERSION_CONFLICT"},
		{"a", "", "INVALID_ARGUMENT"}, {"a", "sha256:00", "INVALID_ARGUMENT"}, {"a", "file", "INVALID_ARGUMENT"},
		{"../a", openat2fs.Absent, "PATH_ESCAPE"}, {"x/../a", openat2fs.Absent, "PATH_ESCAPE"}, {"/a", openat2fs.Absent, "PATH_ESCAPE"}, {"a/", openat2fs.Absent, "PATH_ESCAPE"},
	} {
		h := r.helper()
		_, err := h.planned(context.Background(), []byte("*** Begin Patch\n*** Delete File: a\n*** End Patch"), map[string]string{c.path: c.version})
		if f := faultOf(err); (c.code == "") != (f == nil) || f != nil && f.Code != c.code {
			t.Errorf("%s expected to be %q: %v, want %q", c.path, c.version, err, c.code)
		}
		h.end()
	}
}
