// Package container builds a sandbox: it assembles the view from a plan and has
// libcontainer put a process into it with namespaces, user map, cgroup and a
// pivoted root of its own. That process is the factory (helper/cell), PID 1 of
// the sandbox; no user code ever runs at this level.
//
// It is used once per workspace, never once per command: libcontainer starts a
// Go runtime several times for each container. It is the only importer of
// libcontainer, whose API its authors do not promise to keep.
//
// Everything is mounted in the helper's own mount namespace, so a helper that
// dies at any point leaves no mount behind.
package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"codespace/sandbox"
	"codespace/sandbox/message"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // its constructor is the container's first stage
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

// libcontainer re-executes this binary as "init" and needs the main thread there. In
// the helper itself that thread is kept for main: libcontainer joins a sandbox's
// mount namespace on a thread it then gives up, and were that the main one
// /proc/self would speak of the sandbox from then on.
func init() {
	logrus.SetLevel(logrus.ErrorLevel) // libcontainer warns of each cgroup a plain user has not
	runtime.LockOSThread()
	if len(os.Args) > 1 && os.Args[1] == "init" {
		go endWithHelper()
		runtime.GOMAXPROCS(1)
		libcontainer.Init()
	}
}

// endWithHelper ends a sandbox whose helper or gateway is gone before its factory
// runs, which watches the same two descriptors: libcontainer waits for the exec
// fifo, and nobody will ever open that.
func endWithHelper() {
	for {
		if _, err := unix.Poll([]unix.PollFd{{Fd: 3}, {Fd: 5}}, -1); err != unix.EINTR {
			os.Exit(1)
		}
	}
}

// Stage is the private directory in which views are assembled.
type Stage struct {
	dir      string
	image    *os.File
	lifeline *os.File
}

// Container is one built sandbox.
type Container struct {
	// Factory is the socket to its PID 1.
	Factory *os.File
	// Cgroups are its cgroup directories by controller.
	Cgroups map[string]string

	none bool // it has no cgroups
	weak bool // those that it has need not be all
	box  *libcontainer.Container
	init *libcontainer.Process
	root string
}

// OpenStage mounts a tmpfs at dir, which must lie in this process's own mount
// namespace. Directories above dir must be searchable by every user. A factory
// ends when lifeline, the reading end of a pipe, hangs up.
func OpenStage(dir string, lifeline *os.File) (*Stage, error) {
	fd, err := tmpfs(quiet, map[string]string{"mode": "0755"})
	if err != nil {
		return nil, sandbox.Fail("stage", 0, err)
	}
	defer unix.Close(fd)
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return nil, sandbox.Fail("stage", 1, err)
	}
	image, err := readOnlyImage()
	if err != nil {
		return nil, sandbox.Fail("stage", 2, err)
	}
	return &Stage{dir: dir, image: image, lifeline: lifeline}, nil
}

// readOnlyImage opens this program through a read-only mount of its own: a
// process that got hold of /proc/<pid>/exe could not open it for writing.
func readOnlyImage() (*os.File, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	fd, err := clonePath(path, false)
	if err != nil {
		return nil, err
	}
	if err := attributes(fd, readOnly); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "helper"), nil
}

// Build makes a sandbox after the plan. A *sandbox.Failure names the step that
// could not be done; then nothing of it is left.
func (s *Stage) Build(p sandbox.Plan) (*Container, error) {
	c := &Container{root: filepath.Join(s.dir, p.ID), none: noGroups()}
	c.weak = c.none || p.Identity.HostUID <= 0 || readOnlyGroups()
	for _, d := range c.stages() {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, sandbox.Fail("stage", 3, err)
		}
	}
	err := assemble(c.root, c.dev(), p)
	if err == nil {
		err = c.start(s, p)
	}
	if err != nil {
		c.Destroy()
		return nil, err
	}
	return c, nil
}

func (c *Container) start(s *Stage, p sandbox.Plan) error {
	ours, theirs, err := message.Pair()
	if err != nil {
		return sandbox.Fail("factory socket", 0, err)
	}
	defer theirs.Close()
	c.Factory = ours
	create := libcontainer.Create
	if c.none {
		create = createGroupless
	}
	if c.box, err = create(filepath.Join(s.dir, "state"), p.ID, c.config(p)); err != nil {
		return sandbox.Fail("container", 0, err)
	}
	c.init = &libcontainer.Process{
		Args: []string{"/proc/self/fd/4", "factory"}, Cwd: "/", Init: true,
		ExtraFiles: []*os.File{theirs, s.image, s.lifeline},
	}
	if err := c.box.Run(c.init); err != nil {
		c.init = nil
		return sandbox.Fail(startStep(err), 1, err)
	}
	state, err := c.box.State()
	if err != nil {
		return sandbox.Fail("container", 2, err)
	}
	c.Cgroups = state.CgroupPaths
	return confine(p, c.Cgroups, c.weak)
}

// startStep gives libcontainer's bare errno a name when the errno is telling: no
// user namespace may be made any more.
func startStep(err error) string {
	if errors.Is(err, unix.ENOSPC) {
		return "container user namespace"
	}
	return "container"
}

// PIDFD is a new pidfd of the sandbox's PID 1.
func (c *Container) PIDFD() (*os.File, error) {
	pid, err := c.init.Pid()
	if err != nil {
		return nil, sandbox.Fail("container", 3, err)
	}
	fd, err := unix.PidfdOpen(pid, 0) // close-on-exec always (pidfd_open(2)); Wait, in Destroy only, frees the pid
	if err != nil {
		return nil, sandbox.Fail("container", 4, err)
	}
	return os.NewFile(uintptr(fd), "factory"), nil
}

// Destroy ends the sandbox with everything in it and frees what it held.
func (c *Container) Destroy() error {
	var errs []error
	if c.Factory != nil {
		c.Factory.Close()
	}
	if c.init != nil {
		c.init.Signal(unix.SIGKILL)
		c.init.Wait()
	}
	if c.box != nil {
		errs = append(errs, c.box.Destroy())
	}
	errs = append(errs, sandbox.RemoveGroups((sandbox.Host{}).Groups(), filepath.Base(c.root)))
	for _, d := range c.stages() {
		if err := unix.Unmount(d, unix.MNT_DETACH); err != nil && err != unix.EINVAL {
			errs = append(errs, fmt.Errorf("cannot unmount view: %w", err))
		}
		errs = append(errs, os.Remove(d))
	}
	return errors.Join(errs...)
}

// dev is where the devices are assembled: libcontainer binds them into the view.
func (c *Container) dev() string { return c.root + ".dev" }

func (c *Container) stages() []string { return []string{c.root, c.dev()} }

func (c *Container) config(p sandbox.Plan) *configs.Config {
	mapped := p.Identity.HostUID > 0
	uid, gid := max(p.Identity.HostUID, 0), max(p.Identity.HostGID, 0)
	// Over its own namespaces only. SYS_ADMIN makes cells; SETFCAP lets a cell map
	// the container's uid 0 into its last user namespace (user_namespaces(7)).
	caps := []string{"CAP_SYS_ADMIN", "CAP_SETFCAP"}
	return &configs.Config{
		Rootfs: c.root,
		Namespaces: configs.Namespaces{
			{Type: configs.NEWUSER}, {Type: configs.NEWNS}, {Type: configs.NEWPID}, {Type: configs.NEWNET},
			{Type: configs.NEWIPC}, {Type: configs.NEWUTS}, {Type: configs.NEWCGROUP},
		},
		UIDMappings:     []configs.IDMap{{ContainerID: 0, HostID: int64(uid), Size: 1}},
		GIDMappings:     []configs.IDMap{{ContainerID: 0, HostID: int64(gid), Size: 1}},
		Capabilities:    &configs.Capabilities{Bounding: caps, Effective: caps, Permitted: caps},
		NoNewPrivileges: true,
		RootlessEUID:    !mapped,
		RootlessCgroups: c.weak,
		RootPropagation: unix.MS_PRIVATE | unix.MS_REC,
		Hostname:        "sandbox",
		Networks:        []*configs.Network{{Type: "loopback"}},
		Mounts: []*configs.Mount{
			{Device: "bind", Source: c.dev(), Destination: "/dev", Flags: unix.MS_BIND | unix.MS_REC},
			{Device: "proc", Source: "proc", Destination: "/proc", Flags: unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		},
		Cgroups: &cgroups.Cgroup{
			Parent: p.GroupName(), Name: "init", Rootless: c.weak,
			Resources: &cgroups.Resources{Devices: deviceRules()},
		},
	}
}
