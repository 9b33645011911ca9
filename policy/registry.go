package policy

import (
	"maps"
	"slices"
)

// Registry is everything the operator has decided. It does not change once Load
// or Embedded has returned it and may be shared between goroutines.
type Registry struct {
	State    State
	Listen   Listen
	Identity Identity

	workspaces map[string]Workspace
}

// Workspace is the registered workspace of that id. The caller may keep and
// change what it gets.
func (r *Registry) Workspace(id string) (Workspace, bool) {
	w, ok := r.workspaces[id]
	return w.clone(), ok
}

// IDs are the ids of all workspaces, sorted.
func (r *Registry) IDs() []string {
	return slices.Sorted(maps.Keys(r.workspaces))
}

func (w Workspace) clone() Workspace {
	w.Protected = slices.Clone(w.Protected)
	w.Mounts = slices.Clone(w.Mounts)
	w.Caches = slices.Clone(w.Caches)
	w.Devices = slices.Clone(w.Devices)
	w.Variables = maps.Clone(w.Variables)
	return w
}
