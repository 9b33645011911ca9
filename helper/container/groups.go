package container

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"codespace/sandbox"

	"github.com/opencontainers/cgroups"
	_ "github.com/opencontainers/cgroups/devices" // enables device rules
	devices "github.com/opencontainers/cgroups/devices/config"
	"github.com/opencontainers/cgroups/fs2"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/configs/validate"
	"golang.org/x/sys/unix"
)

// noGroups reports whether sandboxes are built without cgroups. Once for all of a
// helper's: libcontainer, too, looks only once for the mounts, and mounts of the host
// may come later.
var noGroups = sync.OnceValue(sandbox.Host{}.Groupless)

// groupless is libcontainer's state of a container that has no cgroups.
type groupless struct {
	libcontainer.State
	// CgroupPaths stands for State's own, which is left out when it is empty: paths
	// that are not there are looked for.
	CgroupPaths map[string]string `json:"cgroup_paths"`
}

// createGroupless does the work of libcontainer.Create where no cgroup file system is
// there. Create takes that for a fault, also of a rootless container: before all
// else it looks for where the cgroups would be (opencontainers/cgroups, fs/paths.go,
// initPaths). Load takes the cgroups from the state that Create has left, so this
// leaves such a state, with none. From there on the container is one whose user was
// permitted none (fs/fs.go, Rootless).
func createGroupless(root, id string, config *configs.Config) (*libcontainer.Container, error) {
	if err := validate.Validate(config); err != nil {
		return nil, err
	}
	state := groupless{CgroupPaths: map[string]string{}}
	state.ID, state.Config = id, *config
	b, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, id)
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "state.json"), b, 0o600); err != nil {
		return nil, err
	}
	return libcontainer.Load(root, id)
}

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
