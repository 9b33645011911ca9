package policy_test

import (
	"reflect"
	"testing"
	"time"

	"codespace/policy"
)

// example is the registry of the documentation, with two more workspaces.
const example = `
[state]
dir = "$DIR/state"            # ledger, keys, locks; never inside a workspace
[listen]
socket = "$DIR/run/mcp.sock"
http = "127.0.0.1:8787"
operator = "$DIR/run/operator.sock"
[identity]
uid_base = 2000000000
uid_count = 4096
[environments.host]
kind = "host"
[environments.box]
kind = "container"
[profiles.ci]
extends = "workspace-write"
protected = [".git/hooks", ".envrc"]
protected_extra = [".envrc", "ci/*.yml"]
mounts = [{ path = "$DIR/sdk", access = "read" }]
caches = ["go-build", "npm", "pip", "cargo", "go-mod", "ccache"]
devices = []
environment = { CI = "1", PATH = "/usr/bin" }
debug = false
[[profiles.audit.mounts]]
path = "$DIR/tool"
[profiles.audit]
extends = "read-only"
debug = true
[workspaces.site]
root = "$DIR/site"
environment = "host"
profile = "ci"
network = "restricted"
approvals = "off"
[workspaces.site.limits]
wall = "0"
grace = "5s"
memory = "512MiB"
pids = 64
processes = 2
output = "64KiB"
open_files = 256
file_size = "1MiB"
enforcement = "best-effort"
[workspaces.other]
root = "$DIR/other/../other/"
profile = "audit"
environment = "box"
`

var defaults = policy.Limits{
	Wall:      10 * time.Minute,
	Grace:     2 * time.Second,
	Memory:    2 << 30,
	PIDs:      512,
	Processes: 8,
	Output:    1 << 20,
	OpenFiles: 1024,
	FileSize:  64 << 20,
}

var defaultProtected = []string{
	".git/hooks", ".git/config", ".git/config.worktree", ".git/info/attributes",
	".git/modules/*/hooks", ".git/modules/*/config",
	".git/worktrees/*/config.worktree", ".git/worktrees/*/gitdir",
	".claude", ".codex", ".agents", ".cursor", ".gemini", ".mcp.json",
	".vscode", ".idea", ".devcontainer", ".envrc",
}

func TestLoadReadsEveryKey(t *testing.T) {
	h := newHost(t)
	reg := h.load(example)
	equal(t, reg.State, policy.State{Dir: h.path("state")})
	equal(t, reg.Listen, policy.Listen{
		Socket:   h.path("run/mcp.sock"),
		HTTP:     "127.0.0.1:8787",
		Operator: h.path("run/operator.sock"),
	})
	equal(t, reg.Identity, policy.Identity{UIDBase: 2_000_000_000, UIDCount: 4096})
	equal(t, reg.IDs(), []string{"other", "site"})
	site, _ := reg.Workspace("site")
	equal(t, site, policy.Workspace{
		ID:          "site",
		Root:        h.path("site"),
		Environment: policy.Environment{Name: "host", Kind: policy.KindHost},
		Profile:     "ci",
		Access:      policy.AccessWrite,
		Network:     policy.NetworkRestricted,
		Approvals:   policy.ApprovalsOff,
		Protected:   []string{".git/hooks", ".envrc", "ci/*.yml"},
		Mounts:      []policy.Mount{{Path: h.path("sdk")}},
		Caches: []policy.Cache{
			{Name: "go-build", Target: "/home/sandbox/.cache/go-build"},
			{Name: "npm", Target: "/home/sandbox/.npm"},
			{Name: "pip", Target: "/home/sandbox/.cache/pip"},
			{Name: "cargo", Target: "/home/sandbox/.cargo"},
			{Name: "go-mod", Target: "/home/sandbox/go/pkg/mod"},
			{Name: "ccache", Target: "/home/sandbox/.cache/ccache"},
		},
		Devices:   []string{},
		Variables: map[string]string{"CI": "1", "PATH": "/usr/bin"},
		Identity:  "mapped",
		Limits: policy.Limits{
			Wall:      0,
			Grace:     5 * time.Second,
			Memory:    512 << 20,
			PIDs:      64,
			Processes: 2,
			Output:    64 << 10,
			OpenFiles: 256,
			FileSize:  1 << 20,
		},
		Enforcement: policy.BestEffort,
	})
}

func TestLoadFillsDefaults(t *testing.T) {
	h := newHost(t)
	reg := h.load(example)
	other, _ := reg.Workspace("other")
	equal(t, other, policy.Workspace{
		ID:          "other",
		Root:        h.path("other"),
		Environment: policy.Environment{Name: "box", Kind: policy.KindContainer},
		Profile:     "audit",
		Access:      policy.AccessRead,
		Network:     policy.NetworkRestricted,
		Approvals:   policy.ApprovalsOff,
		Protected:   defaultProtected,
		Mounts:      []policy.Mount{{Path: h.path("tool")}},
		Caches:      []policy.Cache{},
		Devices:     []string{},
		Variables:   map[string]string{},
		Debug:       true,
		Identity:    "mapped",
		Limits:      defaults,
		Enforcement: policy.Strict,
	})
	least := h.load(minimal)
	equal(t, least.Listen, policy.Listen{})
	equal(t, least.Identity, policy.Identity{UIDBase: 1_900_000_000, UIDCount: 65536})
	site, _ := least.Workspace("site")
	equal(t, site.Environment, policy.Environment{Name: "host", Kind: policy.KindHost})
	equal(t, site.Access, policy.AccessWrite)
}

func TestRegistryIsNotChangedThroughItsWorkspaces(t *testing.T) {
	h := newHost(t)
	reg := h.load(example)
	before, _ := reg.Workspace("site")
	digest := before.Digest()
	before.Protected[0], before.Mounts[0].Path, before.Caches[0].Name = "", "/", ""
	before.Variables["LD_PRELOAD"] = "x"
	after, _ := reg.Workspace("site")
	equal(t, after.Digest(), digest)
	if unknown, ok := reg.Workspace("nobody"); ok || unknown.ID != "" {
		t.Error("an id that nobody registered names a workspace")
	}
}

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
