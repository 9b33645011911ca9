package container

import (
	"path/filepath"
	"slices"

	"codespace/sandbox"

	"github.com/opencontainers/cgroups"
	_ "github.com/opencontainers/cgroups/devices" // enables device rules
	devices "github.com/opencontainers/cgroups/devices/config"
	"github.com/opencontainers/cgroups/fs2"
	"golang.org/x/sys/unix"
)

// readOnlyGroups reports whether a cgroup file system that must be written to is
// mounted read-only, as in most containers even for their root. What then cannot be
// enforced is named in the receipt, or refused in a cell if enforcement is strict.
func readOnlyGroups() bool {
	return slices.ContainsFunc((sandbox.Host{}).Groups(), func(dir string) bool {
		return unix.Access(dir, unix.W_OK) == unix.EROFS
	})
}

// confine says what holds for the sandbox as a whole, its cells included:
// libcontainer does so for the factory's cgroup alone, and on v2 the cells' are
// beside that one. A share of the processors is no wall: where it cannot be set it
// is done without.
func confine(p sandbox.Plan, paths map[string]string, weak bool) error {
	sandbox.Host{}.Weigh(p.GroupName())
	if paths["devices"] != "" || paths[""] == "" || weak {
		return nil // v1: the cells stay where libcontainer has set them
	}
	r := &cgroups.Resources{Devices: deviceRules()}
	m, err := fs2.NewManager(&cgroups.Cgroup{Resources: r}, filepath.Dir(paths[""]))
	if err == nil {
		err = m.Set(r)
	}
	if err != nil {
		return sandbox.Fail("device rules", 0, err)
	}
	return nil
}

// deviceRules is the second wall behind the view's device nodes, where the host
// has a devices cgroup.
func deviceRules() []*devices.Rule {
	rules := []*devices.Rule{{Type: devices.WildcardDevice, Major: devices.Wildcard, Minor: devices.Wildcard, Permissions: "rwm"}}
	allow := [][2]int64{{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 2}, {136, devices.Wildcard}}
	for _, d := range allow {
		rules = append(rules, &devices.Rule{Type: devices.CharDevice, Major: d[0], Minor: d[1], Permissions: "rw", Allow: true})
	}
	return rules
}
