package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"codespace/policy"
)

// Receipt names the layers in force for one command, with a digest over them.
// Every entry was either read back from the kernel after the cell was locked
// down or is a step that would have refused the cell had it failed.
type Receipt struct {
	Digest string   `json:"digest"` // "sha256:" and hex, over the JSON of the layers
	Layers []string `json:"layers"`
}

// status is the kernel's view of a process (proc_pid_status(5)).
type status map[string]string

func readStatus(pid int) (status, error) {
	b, err := slurp(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, err
	}
	s := status{}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok {
			s[k] = strings.TrimSpace(v)
		}
	}
	return s, nil
}

const noCapabilities = "0000000000000000"

// Inspect reads back the kernel's view of a cell's PID 1 before it is released
// and compares it with the plan. Any difference is a *Failure: nothing runs.
func (p Plan) Inspect(pid int, l Leaf) (Receipt, error) {
	s, err := readStatus(pid)
	if err != nil {
		return Receipt{}, Fail("receipt", 0, err)
	}
	want := map[string]string{"CapInh": noCapabilities, "CapPrm": noCapabilities, "CapEff": noCapabilities,
		"CapBnd": noCapabilities, "CapAmb": noCapabilities, "NoNewPrivs": "1", "Seccomp": "2"}
	// A filter on the daemon itself adds to the count; one more is not one less.
	if n, err := strconv.Atoi(s["Seccomp_filters"]); err != nil || n < 2 {
		want["Seccomp_filters"] = "2"
	}
	for k, v := range want {
		if s[k] != v {
			return Receipt{}, &Failure{Step: "receipt", Index: 1, Reason: fmt.Sprintf("the kernel shows %s %q, the plan wants %q", k, s[k], v)}
		}
	}
	// Outside the initial user namespace this helper names the sandbox's user 0.
	id := strconv.Itoa(max(p.Identity.HostUID, 0))
	if got := strings.Fields(s["Uid"]); !slices.Equal(got, []string{id, id, id, id}) {
		return Receipt{}, &Failure{Step: "receipt", Index: 2, Reason: fmt.Sprintf("the kernel shows uid %v, the plan wants %s", got, id)}
	}
	return newReceipt(p.layers(l)), nil
}

func newReceipt(layers []string) Receipt {
	b, err := json.Marshal(layers)
	if err != nil {
		panic(err) // a list of strings always marshals
	}
	sum := sha256.Sum256(b)
	return Receipt{Digest: "sha256:" + hex.EncodeToString(sum[:]), Layers: layers}
}

func (p Plan) layers(l Leaf) []string {
	layers := []string{
		"namespaces: user mount pid net ipc uts cgroup",
		"view: allow-list on a private root",
		"capabilities: none",
		"no-new-privileges",
		"seccomp: allow-list and deny-list",
		"network: loopback of its own only",
		"rlimits: nofile core memlock msgqueue sigpending nproc",
		"proc: own pid namespace, masked, hidepid",
	}
	switch {
	case p.Identity.Mapped():
		layers = append(layers, "identity: host uid of its own, id-mapped workspace")
	case p.Identity.HostUID > 0:
		layers = append(layers, "identity: the workspace owner's uid (weaker: shared with that user)")
	default:
		layers = append(layers, "identity: the starting user's uid (weaker: shared with that user)")
	}
	switch {
	case l.Memory != "":
		layers = append(layers, "cgroup: memory limit")
	case l == Leaf{}:
		layers = append(layers, "cgroup: none for memory and cpu (not enforced)")
	default:
		layers = append(layers, "cgroup: none for memory (not enforced)")
	}
	layers = append(layers, or(l.PIDs != "", "cgroup: pids limit", "pids: RLIMIT_NPROC of its own user namespace"))
	return append(layers, or(p.Enforce == policy.Strict, "enforcement: strict", "enforcement: best-effort"))
}

func or(cond bool, a, b string) string {
	if cond {
		return a
	}
	return b
}
