package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codespace/policy"
)

// host is a directory with what a registry talks about: $DIR/site and
// $DIR/other to register, $DIR/sdk and $DIR/tool to mount, $DIR/etc for the file.
type host struct {
	t   testing.TB
	dir string
}

func newHost(t testing.TB) host {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := host{t, dir}
	h.must(os.Chmod(dir, 0o700)) // the umask may have left it to the group
	for _, name := range []string{"site/src", "other", "sdk", "etc"} {
		h.must(os.MkdirAll(h.path(name), 0o755))
		h.must(os.Chmod(h.path(name), 0o755))
	}
	h.must(os.WriteFile(h.path("tool"), nil, 0o755))
	return h
}

func (h host) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h host) path(name string) string { return filepath.Join(h.dir, name) }

// write puts text into $DIR/etc/config.toml, with $DIR expanded.
func (h host) write(text string) string {
	h.t.Helper()
	path := h.path("etc/config.toml")
	h.must(os.WriteFile(path, []byte(strings.ReplaceAll(text, "$DIR", h.dir)), 0o600))
	return path
}

// load loads text as a registry that must be accepted.
func (h host) load(text string) *policy.Registry {
	h.t.Helper()
	reg, err := policy.Load(h.write(text))
	h.must(err)
	return reg
}

// refuse loads text as a registry that must be refused where `▲` stands, and
// returns the error.
func (h host) refuse(text string) string {
	h.t.Helper()
	text = strings.ReplaceAll(text, "$DIR", h.dir)
	before, after, marked := strings.Cut(text, "▲")
	path := h.write(before + after)
	reg, err := policy.Load(path)
	if err == nil {
		h.t.Fatalf("accepted with workspaces %v", reg.IDs())
	}
	if marked {
		line := strings.Count(before, "\n") + 1
		column := len(before) - strings.LastIndex(before, "\n")
		if at := fmt.Sprintf("%s:%d:%d: ", path, line, column); !strings.Contains(err.Error(), at) {
			h.t.Errorf("not at %d:%d", line, column)
		}
	}
	if !strings.HasPrefix(err.Error(), "cannot load registry: "+path) {
		h.t.Errorf("does not begin with the file")
	}
	if !strings.Contains(err.Error(), "found ") || !strings.Contains(err.Error(), "; allowed: ") {
		h.t.Errorf("does not say what was found and what is allowed")
	}
	return err.Error()
}

// says checks that text contains all parts.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("does not say %q", part)
		}
	}
	if t.Failed() {
		t.Logf("it says: %s", text)
	}
}

// minimal is the least registry with one workspace.
const minimal = `
[state]
dir = "$DIR/state"
[workspaces.site]
root = "$DIR/site"
profile = "workspace-write"
`
