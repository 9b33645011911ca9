package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"codespace/policy"
)

// Settings is what a runner is started with, on its standard input, where other
// users cannot read it: where its registry comes from and where its files go.
// The gateway reads its own registry from the same settings.
type Settings struct {
	Instance string `json:"instance"`         // directory made by NewInstance
	Config   string `json:"config,omitempty"` // registry file; "" for one embedded workspace

	Workspace string            `json:"workspace,omitempty"` // absolute directory
	Mounts    []string          `json:"mounts,omitempty"`    // absolute
	Caches    []string          `json:"caches,omitempty"`
	Variables []string          `json:"variables,omitempty"` // "NAME=VALUE"
	Timeout   *time.Duration    `json:"timeout,omitempty"`
	Memory    string            `json:"memory,omitempty"`
	Strict    bool              `json:"strict,omitempty"`
	Environ   map[string]string `json:"environ,omitempty"` // HOME and XDG_STATE_HOME of the user
}

const maxSettings = 4 << 20

// ReadSettings reads what Encode wrote.
func ReadSettings(r io.Reader) (Settings, error) {
	var s Settings
	if err := json.NewDecoder(io.LimitReader(r, maxSettings)).Decode(&s); err != nil {
		return s, fmt.Errorf("cannot read settings: %w", err)
	}
	return s, nil
}

// Encode returns the settings as a runner reads them.
func (s Settings) Encode() ([]byte, error) { return json.Marshal(s) }

// Registry loads the registry that the settings name.
func (s Settings) Registry() (*policy.Registry, error) {
	if s.Config != "" {
		return policy.Load(s.Config)
	}
	return policy.Embedded(s.Workspace, policy.Options{
		Mounts: s.Mounts, Caches: s.Caches, Variables: s.Variables, Timeout: s.Timeout, Memory: s.Memory, Strict: s.Strict,
		Environ: func(name string) (string, bool) { v, ok := s.Environ[name]; return v, ok },
	})
}

// Digest is by which gateway and runner make sure that they decide by the
// same registry.
func (Settings) Digest(r *policy.Registry) string {
	h := sha256.New()
	for _, id := range r.IDs() {
		w, _ := r.Workspace(id)
		fmt.Fprintln(h, id, w.Digest())
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
