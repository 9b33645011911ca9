package policy_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"codespace/policy"
)

// with is a look-up of exactly these variables.
func with(variables ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range variables {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
}

// embed makes the registry of one workspace, which must be accepted.
func (h host) embed(dir string, o policy.Options) (*policy.Registry, policy.Workspace) {
	h.t.Helper()
	if o.Environ == nil {
		o.Environ = with("HOME=" + h.path("home"))
	}
	reg, err := policy.Embedded(dir, o)
	h.must(err)
	w, _ := reg.Workspace(reg.IDs()[0])
	return reg, w
}

func TestEmbeddedDefaults(t *testing.T) {
	h := newHost(t)
	reg, w := h.embed(h.path("site"), policy.Options{})
	equal(t, w, policy.Workspace{
		ID:          "site",
		Root:        h.path("site"),
		Environment: policy.Environment{Name: "host", Kind: policy.KindHost},
		Profile:     "workspace-write",
		Access:      policy.AccessWrite,
		Network:     policy.NetworkRestricted,
		Approvals:   policy.ApprovalsOff,
		Protected:   defaultProtected,
		Mounts:      []policy.Mount{},
		Caches: []policy.Cache{
			{Name: "go-build", Target: "/home/sandbox/.cache/go-build"},
			{Name: "npm", Target: "/home/sandbox/.npm"},
			{Name: "pip", Target: "/home/sandbox/.cache/pip"},
			{Name: "cargo", Target: "/home/sandbox/.cargo"},
		},
		Devices:     []string{},
		Variables:   map[string]string{},
		Identity:    "mapped",
		Limits:      defaults,
		Enforcement: policy.BestEffort,
	})
	equal(t, reg.IDs(), []string{"site"})
	equal(t, reg.Listen, policy.Listen{})
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(h.path("site"))))
	equal(t, reg.State.Dir, h.path("home/.local/state/codespace/site-"+sum[:16]))
	if _, err := os.Lstat(h.path("home")); err == nil {
		t.Error("it created something")
	}
}

func TestEmbeddedOptions(t *testing.T) {
	h := newHost(t)
	timeout := 90 * time.Second
	t.Chdir(h.dir)
	_, w := h.embed("site/src/..", policy.Options{
		Mounts:    []string{"sdk", h.path("tool")},
		Caches:    []string{"npm", "go-mod"},
		Variables: []string{"CI=1", "EMPTY=", "PAIR=a=b", "TOKEN"},
		Timeout:   &timeout,
		Memory:    "512MiB",
		Strict:    true,
		Environ:   with("HOME=/nonexistent", "TOKEN=secret"),
	})
	equal(t, w.Root, h.path("site"))
	equal(t, w.Mounts, []policy.Mount{{Path: h.path("sdk")}, {Path: h.path("tool")}})
	equal(t, w.Caches[4:], []policy.Cache{{Name: "go-mod", Target: "/home/sandbox/go/pkg/mod"}})
	equal(t, w.Variables, map[string]string{"CI": "1", "EMPTY": "", "PAIR": "a=b", "TOKEN": "secret"})
	equal(t, w.Limits.Wall, timeout)
	equal(t, w.Limits.Memory, 512<<20)
	equal(t, w.Enforcement, policy.Strict)
	timeout = 0
	_, w = h.embed("site", policy.Options{Timeout: &timeout})
	equal(t, w.Limits.Wall, 0)
}

func TestEmbeddedMakesASafeID(t *testing.T) {
	h := newHost(t)
	for base, want := range map[string]string{
		"My Project":            "my-project",
		"..hidden":              "hidden",
		"a\nb":                  "a-b",
		"日本":                    "workspace",
		"-":                     "workspace",
		"Größe_1.0":             "gr--e_1.0",
		strings.Repeat("a", 99): strings.Repeat("a", 64),
		"x\u212a":               "xk",
	} {
		h.must(os.Mkdir(h.path(base), 0o755))
		_, w := h.embed(h.path(base), policy.Options{})
		equal(t, w.ID, want)
		equal(t, w.Root, h.path(base))
	}
}

func TestEmbeddedFindsItsState(t *testing.T) {
	h := newHost(t)
	h.must(os.Symlink("sdk", h.path("link")))
	for variables, want := range map[string]string{
		"HOME=$DIR/home XDG_STATE_HOME=$DIR/xdg":  "$DIR/xdg/codespace/site-",
		"HOME=$DIR/home XDG_STATE_HOME=xdg":       "$DIR/home/.local/state/codespace/site-",
		"HOME=$DIR/home XDG_STATE_HOME=":          "$DIR/home/.local/state/codespace/site-",
		"XDG_STATE_HOME=$DIR/xdg":                 "$DIR/xdg/codespace/site-",
		"HOME=$DIR/home XDG_STATE_HOME=$DIR/link": "$DIR/sdk/codespace/site-",
	} {
		environ := with(strings.Fields(strings.ReplaceAll(variables, "$DIR", h.dir))...)
		reg, _ := h.embed(h.path("site"), policy.Options{Environ: environ})
		if want := strings.ReplaceAll(want, "$DIR", h.dir); !strings.HasPrefix(reg.State.Dir, want) {
			t.Errorf("%s: got %s", variables, reg.State.Dir)
		}
	}
	for _, variables := range []string{"", "HOME=", "HOME=home", "XDG_STATE_HOME=xdg"} {
		_, err := policy.Embedded(h.path("site"), policy.Options{Environ: with(strings.Fields(variables)...)})
		if err == nil {
			t.Fatalf("%s: accepted", variables)
		}
		says(t, err.Error(), "cannot place the state: found neither", "set XDG_STATE_HOME")
	}
}

func TestEmbeddedRefuses(t *testing.T) {
	long := 31 * 24 * time.Hour
	short := time.Microsecond
	back := -time.Second
	cases := []struct {
		name  string
		dir   string
		o     policy.Options
		parts []string
	}{
		{"no directory", "", policy.Options{}, []string{`workspace ""`}},
		{"missing", "$DIR/gone", policy.Options{}, []string{"no such file", "create it"}},
		{"file", "$DIR/tool", policy.Options{}, []string{"not a directory"}},
		{"everything", "/", policy.Options{}, []string{"which is /"}},
		{"home", "$DIR/home", policy.Options{}, []string{"home directory itself"}},
		{"above home", "$DIR", policy.Options{}, []string{"contains $DIR/home"}},
		{"root's home", "/root", policy.Options{}, []string{"home directory itself"}},
		{"system", "/usr/share", policy.Options{}, []string{"lies in /usr"}},
		{"temporary", "/tmp", policy.Options{}, []string{"which is /tmp"}},
		{"around the state", "$DIR/home/.local", policy.Options{}, []string{"contains $DIR/home/.local/state/codespace", "XDG_STATE_HOME=$HOME/"}},
		{"in the state", "$DIR/home/.local/state/codespace/x", policy.Options{}, []string{"lies in", "set XDG_STATE_HOME"}},
		{"mount missing", "$DIR/site", policy.Options{Mounts: []string{"$DIR/gone"}}, []string{"--mount", "no such file"}},
		{"mount empty", "$DIR/site", policy.Options{Mounts: []string{""}}, []string{`--mount ""`}},
		{"mount twice", "$DIR/site", policy.Options{Mounts: []string{"$DIR/sdk", "$DIR/sdk/"}}, []string{"mounted already"}},
		{"mount home", "$DIR/site", policy.Options{Mounts: []string{"$DIR/home"}}, []string{"home directory itself"}},
		{"mount state", "$DIR/site", policy.Options{Mounts: []string{"$DIR/home/.local"}}, []string{"CodeSpace's own state"}},
		{"mount the workspace", "$DIR/site", policy.Options{Mounts: []string{"$DIR/site"}}, []string{"the workspace itself"}},
		{"cache name", "$DIR/site", policy.Options{Caches: []string{"../x"}}, []string{"--cache", "a name of 1 to 64"}},
		{"variable name", "$DIR/site", policy.Options{Variables: []string{"A-B=1"}}, []string{"--env", "letters, digits"}},
		{"variable without name", "$DIR/site", policy.Options{Variables: []string{"=1"}}, []string{"--env"}},
		{"variable without value", "$DIR/site", policy.Options{Variables: []string{"NOBODY"}}, []string{"--env NOBODY", "write NOBODY=VALUE"}},
		{"variable twice", "$DIR/site", policy.Options{Variables: []string{"A=1", "A=2"}}, []string{"each once"}},
		{"variable fixed", "$DIR/site", policy.Options{Variables: []string{"HOME"}}, []string{"sandbox's own"}},
		{"variable not UTF-8", "$DIR/site", policy.Options{Variables: []string{"A=\xff"}}, []string{"UTF-8"}},
		{"timeout long", "$DIR/site", policy.Options{Timeout: &long}, []string{"--timeout", `found "744h"`, `"720h"`}},
		{"timeout short", "$DIR/site", policy.Options{Timeout: &short}, []string{"--timeout", `"1ms"`}},
		{"timeout negative", "$DIR/site", policy.Options{Timeout: &back}, []string{`found "-1s"`}},
		{"memory", "$DIR/site", policy.Options{Memory: "2GB"}, []string{"--memory", `found "2GB"`, "GiB"}},
		{"memory small", "$DIR/site", policy.Options{Memory: "1MiB"}, []string{`from "16MiB"`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t)
			h.must(os.MkdirAll(h.path("home/.local/state/codespace/x"), 0o755))
			here := func(text string) string { return strings.ReplaceAll(text, "$DIR", h.dir) }
			for i := range c.o.Mounts {
				c.o.Mounts[i] = here(c.o.Mounts[i])
			}
			c.o.Environ = with("HOME=" + h.path("home"))
			_, err := policy.Embedded(here(c.dir), c.o)
			if err == nil {
				t.Fatal("accepted")
			}
			says(t, err.Error(), "cannot use ", "found ", "; allowed: ")
			for _, part := range c.parts {
				says(t, err.Error(), here(part))
			}
		})
	}
}

func TestEmbeddedRefusesARootThatJSONCannotCarry(t *testing.T) {
	h := newHost(t)
	h.must(os.Mkdir(h.path("a\xffb"), 0o755))
	_, err := policy.Embedded(h.path("a\xffb"), policy.Options{Environ: with("HOME=/nonexistent")})
	if err == nil {
		t.Fatal("accepted")
	}
	says(t, err.Error(), "UTF-8", "rename")
}

func TestEmbeddedWorksBelowAHome(t *testing.T) {
	h := newHost(t)
	h.must(os.MkdirAll(h.path("home/project"), 0o755))
	_, w := h.embed(h.path("home/project"), policy.Options{})
	equal(t, w.ID, "project")
}
