package sandbox

// Receipt names the layers in force for one command, with a digest over them.
type Receipt struct {
	Digest string   `json:"digest"` // "sha256:" and hex, over the layers
	Layers []string `json:"layers"` // "user-namespace", "seccomp", ...
}
