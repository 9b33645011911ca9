// Package sandbox describes a sandbox and carries the protocol by which one is
// prepared. It stands between the runner, which decides what a sandbox may
// hold, and the helper, which builds it.
//
// A Plan is pure data, complete and checked before anything is built: what is
// not in it is not in the sandbox. The helper answers it with a Receipt of what
// is really in force. If a plan cannot be built as written nothing runs; there
// is no weaker form to fall back to.
//
// Two kinds of messages cross (see protocol.go for the drawing): requests
// between runner and helper, in JSON, and the small binary messages that the C
// side of a cell reads and writes (message.go, helper/cell/cell.h).
//
// The package builds nothing itself and starts no process.
package sandbox

import (
	"fmt"
	"path"
	"sort"
	"strings"

	"codespace/policy"
)

// Home is the home directory inside every sandbox.
const Home = "/home/sandbox"

// Identity is who the sandbox is on the host.
type Identity struct {
	// HostUID and HostGID are the sandbox's own host ids, never 0. Both are -1
	// where the helper was not started as the host's root: then the sandbox
	// has the starting user's id.
	HostUID int `json:"host_uid"`
	HostGID int `json:"host_gid"`
	// DiskUID and DiskGID own the workspace on disk and are mapped to the host
	// ids by an id-mapped mount.
	DiskUID int `json:"disk_uid"`
	DiskGID int `json:"disk_gid"`
	// StartingUID is the starting user as the namespace around this one names
	// it: 0 is refused where the sandbox has no ids of its own.
	StartingUID int `json:"starting_uid"`
}

// Mapped reports whether the workspace is id-mapped to ids of the sandbox's own.
func (i Identity) Mapped() bool { return i.HostUID > 0 && i.HostUID != i.DiskUID }

// Root is the workspace as the runner saw it. The helper opens Path anew and
// refuses unless it finds this very directory.
type Root struct {
	Path   string `json:"path"`
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// Bind is one host path in the view.
type Bind struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// Plan is everything one sandbox is made of.
type Plan struct {
	ID        string             `json:"id"` // unique on this host, [a-z0-9-]
	Workspace string             `json:"workspace_id"`
	Digest    string             `json:"policy_digest"`
	Root      Root               `json:"root"`
	Identity  Identity           `json:"identity"`
	Writable  bool               `json:"writable"` // false: no cell of it may write the workspace
	Mounts    []Bind             `json:"mounts"`   // read-only
	Caches    []Bind             `json:"caches"`   // writable, id-mapped like the workspace
	Debug     bool               `json:"debug"`
	Limits    policy.Limits      `json:"limits"`
	Enforce   policy.Enforcement `json:"enforcement"`
	TmpBytes  int64              `json:"tmp_bytes"` // of /tmp and of Home, each
	ShmBytes  int64              `json:"shm_bytes"` // of /dev/shm, per command
}

// NewPlan derives the plan of a decided workspace's sandbox named id. Caches lie
// below stateDir.
func NewPlan(g policy.Grant, id, stateDir string) Plan {
	w := g.Workspace
	p := Plan{
		ID: id, Workspace: w.ID, Digest: g.Digest,
		Writable: w.Access == policy.AccessWrite, Debug: w.Debug, Limits: w.Limits, Enforce: w.Enforcement,
		TmpBytes: w.Limits.Memory, ShmBytes: w.Limits.Memory / 2,
	}
	for _, m := range w.Mounts {
		p.Mounts = append(p.Mounts, Bind{m.Path, m.Path})
	}
	for _, c := range w.Caches {
		p.Caches = append(p.Caches, Bind{cacheDir(stateDir, w.ID, c), c.Target})
	}
	return p
}

// cacheDir is the host directory of a workspace's cache.
func cacheDir(stateDir, workspace string, c policy.Cache) string {
	return path.Join(stateDir, "caches", workspace, c.Name)
}

// Check refuses a plan that is not closed: paths that are not absolute and
// clean, ids that could be the host's root, a zero limit.
func (p Plan) Check() error {
	if p.ID == "" || strings.Trim(p.ID, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return fmt.Errorf("cannot accept plan: id %q is not [a-z0-9-]+", p.ID)
	}
	if p.Identity.HostUID == 0 || p.Identity.HostGID == 0 {
		return fmt.Errorf("cannot accept plan %s: host id 0", p.ID)
	}
	if p.Identity.HostUID > 0 != (p.Identity.HostGID > 0) {
		return fmt.Errorf("cannot accept plan %s: one host id without the other", p.ID)
	}
	if p.Limits.Memory <= 0 || p.Limits.PIDs <= 0 || p.Limits.OpenFiles <= 0 || p.TmpBytes <= 0 || p.ShmBytes <= 0 {
		return fmt.Errorf("cannot accept plan %s: a limit is not positive", p.ID)
	}
	for _, f := range p.paths() {
		if !path.IsAbs(f) || path.Clean(f) != f || f == "/" || strings.ContainsRune(f, 0) {
			return fmt.Errorf("cannot accept plan %s: path %q is not absolute and clean", p.ID, f)
		}
	}
	return nil
}

func (p Plan) paths() []string {
	all := []string{p.Root.Path}
	for _, b := range append(append([]Bind(nil), p.Mounts...), p.Caches...) {
		all = append(all, b.Source, b.Target)
	}
	return all
}

// Environment is the environment of every command of a workspace: a small fixed
// set (TERM with a terminal), then the operator's own, sorted. Nothing of the
// daemon's is inherited.
func Environment(w policy.Workspace, terminal bool) []string {
	env := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin",
		"HOME": Home, "USER": "sandbox", "LOGNAME": "sandbox", "SHELL": "/bin/sh", "LANG": "C.UTF-8", "TMPDIR": "/tmp",
	}
	if terminal {
		env["TERM"] = "xterm-256color"
	}
	for k, v := range w.Variables {
		env[k] = v
	}
	list := make([]string, 0, len(env))
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	sort.Strings(list)
	return list
}
