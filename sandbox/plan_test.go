package sandbox_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codespace/policy"
	"codespace/sandbox"
)

func TestCheckRefusesOpenPlans(t *testing.T) {
	if err := goodPlan().Check(); err != nil {
		t.Fatalf("not shown: the plan itself is refused: %v", err)
	}
	cases := map[string]func(*sandbox.Plan){
		"no id":                 func(p *sandbox.Plan) { p.ID = "" },
		"id in capitals":        func(p *sandbox.Plan) { p.ID = "A-1" },
		"id with a slash":       func(p *sandbox.Plan) { p.ID = "a/../../b" },
		"id of dots":            func(p *sandbox.Plan) { p.ID = ".." },
		"id with a space":       func(p *sandbox.Plan) { p.ID = "a 1" },
		"id with NUL":           func(p *sandbox.Plan) { p.ID = "a\x001" },
		"id in another script":  func(p *sandbox.Plan) { p.ID = "ä-1" },
		"host uid 0":            func(p *sandbox.Plan) { p.Identity.HostUID = 0 },
		"host gid 0":            func(p *sandbox.Plan) { p.Identity.HostGID = 0 },
		"host uid alone":        func(p *sandbox.Plan) { p.Identity.HostGID = -1 },
		"host gid alone":        func(p *sandbox.Plan) { p.Identity.HostUID = -1 },
		"no memory":             func(p *sandbox.Plan) { p.Limits.Memory = 0 },
		"negative memory":       func(p *sandbox.Plan) { p.Limits.Memory = -1 },
		"no pids":               func(p *sandbox.Plan) { p.Limits.PIDs = 0 },
		"no open files":         func(p *sandbox.Plan) { p.Limits.OpenFiles = 0 },
		"no /tmp":               func(p *sandbox.Plan) { p.TmpBytes = 0 },
		"no /dev/shm":           func(p *sandbox.Plan) { p.ShmBytes = 0 },
		"relative root":         func(p *sandbox.Plan) { p.Root.Path = "srv/site" },
		"no root":               func(p *sandbox.Plan) { p.Root.Path = "" },
		"root is the host's":    func(p *sandbox.Plan) { p.Root.Path = "/" },
		"root with ..":          func(p *sandbox.Plan) { p.Root.Path = "/srv/../etc" },
		"root with a last /":    func(p *sandbox.Plan) { p.Root.Path = "/srv/site/" },
		"root with //":          func(p *sandbox.Plan) { p.Root.Path = "/srv//site" },
		"root with .":           func(p *sandbox.Plan) { p.Root.Path = "/srv/./site" },
		"root with NUL":         func(p *sandbox.Plan) { p.Root.Path = "/srv/site\x00" },
		"relative mount source": func(p *sandbox.Plan) { p.Mounts[0].Source = "opt" },
		"relative mount target": func(p *sandbox.Plan) { p.Mounts[0].Target = "opt" },
		"mount over everything": func(p *sandbox.Plan) { p.Mounts[0].Target = "/" },
		"cache source with ..":  func(p *sandbox.Plan) { p.Caches[0].Source = "/var/lib/../../etc" },
		"cache target with ..":  func(p *sandbox.Plan) { p.Caches[0].Target = "/home/sandbox/../../etc" },
		"empty second mount":    func(p *sandbox.Plan) { p.Mounts = append(p.Mounts, sandbox.Bind{}) },
	}
	for name, change := range cases {
		p := goodPlan()
		change(&p)
		if err := p.Check(); err == nil || !strings.HasPrefix(err.Error(), "cannot accept plan") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, path := range []string{"/a", "/tmp/with space", "/tmp/new\nline", "/srv/ü", "/srv/...", "/srv/..a", "/" + strings.Repeat("d/", 1500) + "e"} {
		p := goodPlan()
		p.Root.Path = path
		if err := p.Check(); err != nil {
			t.Errorf("%.40q: %v", path, err)
		}
	}
	starter := goodPlan()
	starter.Identity.HostUID, starter.Identity.HostGID = -1, -1
	if err := starter.Check(); err != nil {
		t.Errorf("the starting user's own ids: %v", err)
	}
}

// workspace is a decided one with random values, and every text in it.
func workspace(r *rand.Rand) (policy.Workspace, []string) {
	texts := []string{}
	text := func(prefix string) string {
		texts = append(texts, fmt.Sprintf("%s%x", prefix, r.Uint64()))
		return texts[len(texts)-1]
	}
	w := policy.Workspace{
		ID: text("id"), Root: text("/root/"), Environment: policy.Environment{Name: text("environment"), Kind: policy.KindHost}, Profile: text("profile"),
		Access: []policy.Access{policy.AccessRead, policy.AccessWrite}[r.IntN(2)], Network: policy.NetworkRestricted, Approvals: policy.ApprovalsOff,
		Protected: []string{text("protected")}, Devices: []string{text("/dev/")}, Variables: map[string]string{text("NAME"): text("value")},
		Debug: r.IntN(2) == 0, Identity: "mapped", Enforcement: []policy.Enforcement{policy.Strict, policy.BestEffort}[r.IntN(2)],
		Limits: policy.Limits{Memory: 1 + r.Int64N(1<<40), PIDs: 1 + r.Int64N(1000), OpenFiles: 1 + r.Int64N(1000), FileSize: 5},
	}
	for range r.IntN(4) {
		w.Mounts = append(w.Mounts, policy.Mount{Path: text("/mount/")})
	}
	for range r.IntN(4) {
		w.Caches = append(w.Caches, policy.Cache{Name: text("cache"), Target: text("/home/sandbox/")})
	}
	return w, texts
}

// strings collects every string of a JSON value.
func stringsOf(v any) []string {
	var all []string
	switch v := v.(type) {
	case string:
		all = append(all, v)
	case []any:
		for _, e := range v {
			all = append(all, stringsOf(e)...)
		}
	case map[string]any:
		for _, e := range v {
			all = append(all, stringsOf(e)...)
		}
	}
	return all
}

// A plan holds what the workspace holds and what it is called with, as given, and
// nothing of the daemon's. Root and identity are for the runner to add.
func TestNewPlanIsClosedOverPolicy(t *testing.T) {
	t.Setenv("HOME", "/daemon/home")
	t.Setenv("TMPDIR", "/daemon/tmp")
	r := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		w, texts := workspace(r)
		g := policy.Grant{Workspace: w, Access: policy.AccessRead, Digest: "sha256:feed"}
		p := sandbox.NewPlan(g, "a-1", "/state")
		allowed := append(texts, "a-1", "sha256:feed", "", "strict", "best-effort")
		for _, c := range w.Caches {
			allowed = append(allowed, filepath.Join("/state/caches", w.ID, c.Name))
		}
		var value any
		if b, err := json.Marshal(p); err != nil || json.Unmarshal(b, &value) != nil {
			t.Fatal(err)
		}
		for _, s := range stringsOf(value) {
			if !slices.Contains(allowed, s) {
				t.Fatalf("%q in the plan of %+v", s, w)
			}
		}
		if len(p.Mounts) != len(w.Mounts) || len(p.Caches) != len(w.Caches) {
			t.Fatalf("%+v from %+v", p, w)
		}
		for i, m := range p.Mounts {
			if m.Source != w.Mounts[i].Path || m.Target != m.Source {
				t.Fatalf("mount %+v from %+v", m, w.Mounts[i])
			}
		}
		for i, c := range p.Caches {
			if c.Target != w.Caches[i].Target || c.Source != "/state/caches/"+w.ID+"/"+w.Caches[i].Name {
				t.Fatalf("cache %+v from %+v", c, w.Caches[i])
			}
		}
		// Never more than the workspace has; the access of one command is a matter of its cell.
		if p.Writable != (w.Access == policy.AccessWrite) || p.Debug != w.Debug || p.Limits != w.Limits || p.Enforce != w.Enforcement {
			t.Fatalf("%+v from %+v", p, w)
		}
		if p.TmpBytes != w.Limits.Memory || p.ShmBytes != w.Limits.Memory/2 || p.Root != (sandbox.Root{}) || p.Identity != (sandbox.Identity{}) {
			t.Fatalf("%+v from %+v", p, w)
		}
	}
}

var fixedEnvironment = []string{
	"HOME=/home/sandbox", "LANG=C.UTF-8", "LOGNAME=sandbox",
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin",
	"SHELL=/bin/sh", "TMPDIR=/tmp", "USER=sandbox",
}

// A command's environment is the fixed set and the operator's own, whatever the
// daemon's is.
func TestEnvironmentIsFixed(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "of the daemon")
	t.Setenv("PATH", "/of/the/daemon:"+os.Getenv("PATH"))
	t.Setenv("LD_PRELOAD", "")
	if got := sandbox.Environment(policy.Workspace{}, false); !slices.Equal(got, fixedEnvironment) {
		t.Errorf("%q", got)
	}
	dir := t.TempDir()
	home := func(name string) (string, bool) { return filepath.Join(dir, "home"), name == "HOME" }
	embed := func(variables ...string) (policy.Workspace, error) {
		workspace := filepath.Join(dir, "workspace")
		os.Mkdir(workspace, 0o755)
		reg, err := policy.Embedded(workspace, policy.Options{Variables: variables, Environ: home})
		if err != nil {
			return policy.Workspace{}, err
		}
		w, _ := reg.Workspace(reg.IDs()[0])
		return w, nil
	}
	w, err := embed("PATH=/opt/bin:/bin", "LANG=de_DE.UTF-8", "SHELL=/bin/bash", "ZED=last", "A=first=of all")
	if err != nil {
		t.Fatal(err)
	}
	got := sandbox.Environment(w, false)
	want := []string{"A=first=of all", "HOME=/home/sandbox", "LANG=de_DE.UTF-8", "LOGNAME=sandbox", "PATH=/opt/bin:/bin", "SHELL=/bin/bash",
		"TMPDIR=/tmp", "USER=sandbox", "ZED=last"}
	if !slices.Equal(got, want) || !slices.IsSorted(got) {
		t.Errorf("%q", got)
	}
	for _, name := range []string{"HOME", "USER", "LOGNAME", "TMPDIR"} {
		if _, err := embed(name + "=/elsewhere"); err == nil {
			t.Errorf("%s follows the sandbox's layout and was accepted", name)
		}
	}
}
