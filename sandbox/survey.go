package sandbox

import (
	"fmt"
	"strings"
)

// Finding is one layer of the sandbox as this host allows it, or one circumstance
// of this process that matters for it. The remedy is zero where nothing is in the
// way, but for Show.
type Finding struct {
	Name string `json:"name"`
	// State of a layer: "available", "weaker", "missing", or "unused" where the
	// sandbox does not need it. Of a circumstance: "in the way" or "noted".
	State    string `json:"state"`
	Strength string `json:"strength"` // how strong the layer is, or what was seen, in words
	Remedy
}

const (
	available = "available"
	weaker    = "weaker"
	missing   = "missing"
	unused    = "unused"

	inTheWay = "in the way"
	noted    = "noted"
)

// Survey looks at this host, without changing anything, and says of every layer
// whether it can be had, and of this process's circumstances what matters. It
// judges by what the kernel shows; only building a sandbox proves.
func (Host) Survey() (layers, circumstances []Finding) {
	h := look()
	for _, layer := range []struct {
		name, show string
		find       func() Finding
	}{
		{"user namespaces", "cat " + limitFile("user"), h.surveyUserNamespaces},
		{"namespaces", "ls /proc/self/ns; grep . /proc/sys/user/max_*_namespaces", h.surveyNamespaces},
		{"mount API", "uname -r; grep Seccomp /proc/self/status", h.surveyMounts},
		{"proc", "grep ' /proc' /proc/self/mountinfo", h.surveyProc},
		{"identity", "cat /proc/self/uid_map; id -u", h.surveyIdentity},
		{"id-mapping", "findmnt -n -o FSTYPE -T .", h.surveyIDMapping},
		{"capabilities", "grep Cap /proc/self/status", h.surveyCapabilities},
		{"seccomp", "cat " + actionsFile, h.surveySeccomp},
		{"openat2", "uname -r", h.surveyOpenat2},
		{"landlock", "cat /sys/kernel/security/lsm", h.surveyLandlock},
		{"cgroup memory", "cat /proc/self/cgroup", h.surveyMemory},
		{"cgroup pids", "cat /proc/self/cgroup", h.surveyPIDs},
		{"cgroup kill", "cat /proc/self/cgroup", h.surveyKill},
		{"cgroup cpu", "cat /proc/self/cgroup", h.surveyCPU},
		{"rlimits", "ulimit -H -a", h.surveyLimits},
	} {
		f := layer.find()
		f.Name = layer.name
		if f.Show == "" {
			f.Show = layer.show
		}
		layers = append(layers, f)
	}
	return layers, h.circumstances()
}

func has(strength string) Finding { return Finding{State: available, Strength: strength} }

// lacks is a layer that cannot be had for this reason.
func lacks(r Remedy, strength string) Finding {
	return Finding{State: missing, Strength: strength, Remedy: r}
}

// few is a list cut to what a line can hold.
func few(list []string) string {
	const most = 4
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
