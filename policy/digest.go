package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Digest is "sha256:" and 64 hex digits over the whole workspace as canonical
// JSON: fields in a fixed order, map keys sorted, an absent list as an empty one.
// Two workspaces have the same digest only if they permit the same.
func (w Workspace) Digest() string {
	w.Protected = present(w.Protected)
	w.Mounts = present(w.Mounts)
	w.Caches = present(w.Caches)
	w.Devices = present(w.Devices)
	if w.Variables == nil {
		w.Variables = map[string]string{}
	}
	text, err := json.Marshal(w)
	if err != nil {
		panic("policy: a workspace has a field that is not JSON: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
