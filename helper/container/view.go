package container

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"codespace/sandbox"

	"golang.org/x/sys/unix"
)

const (
	quiet    = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	readOnly = quiet | unix.MOUNT_ATTR_RDONLY
)

// view assembles the root a sandbox sees: an allow-list on a private tmpfs. What
// is not put here is not there.
type view struct {
	tree
	plan sandbox.Plan
	user owner // who the sandbox is, as this helper's user namespace names it
}

type step struct {
	name string
	run  func() error
}

// assemble builds the view at dir and its devices at dev, two empty directories in
// the helper's own mount namespace.
func assemble(dir, dev string, p sandbox.Plan) error {
	root, err := mountTmpfs(dir, quiet, "4m")
	if err != nil {
		return sandbox.Fail("root", 0, err)
	}
	defer unix.Close(root)
	v := view{tree: tree{root}, plan: p}
	if p.Identity.HostUID > 0 {
		v.user = owner{p.Identity.HostUID, p.Identity.HostGID}
	}
	steps := []step{
		{"system directories", v.system}, {"etc", v.etc}, {"devices", func() error { return assembleDevices(dev) }}, {"private directories", v.private},
	}
	steps = append(steps, v.registered()...)
	steps = append(steps, step{"read-only root", v.seal})
	for i, s := range steps {
		if err := s.run(); err != nil {
			return sandbox.Fail(s.name, i, err)
		}
	}
	return nil
}

// mountTmpfs mounts a small tmpfs of mode 0755 at an empty directory and returns
// its root.
func mountTmpfs(dir string, attrs int, size string) (int, error) {
	fd, err := tmpfs(attrs, map[string]string{"mode": "0755", "size": size, "nr_inodes": "4096"})
	if err != nil {
		return -1, err
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("cannot mount tmpfs: %w", err)
	}
	return fd, nil
}

// system binds the operating system's own directories read-only, or repeats the
// link where the host has one (merged /usr).
func (v view) system() error {
	for _, p := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if err := v.same(p); err != nil {
			return err
		}
	}
	for _, d := range []string{"/proc", "/dev", "/run", "/var/lib", "/var/cache"} {
		if err := v.directory(d, nobody); err != nil {
			return err
		}
	}
	if v.holds("/var/tmp") {
		return nil // a workspace or mount makes it a directory
	}
	return v.link("../tmp", "/var/tmp")
}

// holds reports whether something registered lies below a directory.
func (v view) holds(dir string) bool {
	below := func(b sandbox.Bind) bool { return strings.HasPrefix(b.Target, dir+"/") }
	return below(sandbox.Bind{Target: v.plan.Root.Path}) || slices.ContainsFunc(v.plan.Mounts, below)
}

// same shows a host path at the same place, read-only: nothing if it is absent,
// the same link if it is a link.
func (v view) same(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return v.link(target, path)
	}
	return v.bind(path, path)
}

func (v view) bind(source, target string) error {
	m, err := clonePath(source, true)
	if err != nil {
		return err
	}
	if err := attributes(m, readOnly); err != nil {
		unix.Close(m)
		return fmt.Errorf("%s: %w", source, err)
	}
	return v.attach(m, target, nobody)
}

// assembleDevices makes a /dev of the few nodes that programs need, each checked to be what
// its name says (a replaced /dev/null is an old attack on container runtimes).
func assembleDevices(dir string) error {
	root, err := mountTmpfs(dir, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, "64k")
	if err != nil {
		return err
	}
	defer unix.Close(root)
	dev := tree{root}
	nodes := map[string]uint64{"null": unix.Mkdev(1, 3), "zero": unix.Mkdev(1, 5), "full": unix.Mkdev(1, 7),
		"random": unix.Mkdev(1, 8), "urandom": unix.Mkdev(1, 9), "tty": unix.Mkdev(5, 0)}
	for name, rdev := range nodes {
		if err := dev.device(name, rdev); err != nil {
			return err
		}
	}
	links := [][2]string{{"pts/ptmx", "ptmx"}, {"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"},
		{"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}}
	for _, l := range links {
		if err := dev.link(l[0], l[1]); err != nil {
			return err
		}
	}
	for _, d := range []string{"pts", "shm"} {
		if err := dev.directory(d, nobody); err != nil {
			return err
		}
	}
	return sealed(root)
}

func (t tree) device(name string, rdev uint64) error {
	fd, err := unix.Open("/dev/"+name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open /dev/%s: %w", name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != rdev {
		return fmt.Errorf("cannot use /dev/%s of this host: it is not the device %d:%d", name, unix.Major(rdev), unix.Minor(rdev))
	}
	m, err := cloneFD(fd, false)
	if err != nil {
		return err
	}
	if err := attributes(m, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC); err != nil {
		unix.Close(m)
		return err
	}
	return t.attach(m, name, nobody)
}

// private makes what belongs to this sandbox alone and ends with it.
func (v view) private() error {
	size, files := strconv.FormatInt(v.plan.TmpBytes, 10), strconv.FormatInt(v.plan.TmpBytes/4096, 10)
	tmp, err := tmpfs(quiet, map[string]string{"mode": "1777", "size": size, "nr_inodes": files})
	if err != nil {
		return err
	}
	if err := v.attach(tmp, "/tmp", nobody); err != nil {
		return err
	}
	home, err := tmpfs(quiet, map[string]string{"mode": "0700", "size": size, "nr_inodes": files, "uid": strconv.Itoa(v.user.uid), "gid": strconv.Itoa(v.user.gid)})
	if err != nil {
		return err
	}
	return v.attach(home, sandbox.Home, nobody)
}

// workspace mounts the workspace at its host path. The directory is opened anew
// and must be the one the runner saw; a mount below it is refused, because it
// would show what the operator did not register.
func (v view) workspace() error {
	fd, err := unix.Openat2(unix.AT_FDCWD, v.plan.Root.Path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return fmt.Errorf("cannot open workspace root: %w", err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Dev != v.plan.Root.Device || st.Ino != v.plan.Root.Inode {
		return errors.New("workspace root was replaced while its sandbox was being built")
	}
	below, err := mountBelow(v.plan.Root.Path)
	if err != nil {
		return err
	}
	if below != "" {
		return v.plan.MountBelow(strings.TrimPrefix(below, v.plan.Root.Path+"/"))
	}
	m, err := cloneFD(fd, false)
	if err != nil {
		return err
	}
	attrs := uint64(quiet)
	if !v.plan.Writable {
		attrs = readOnly
	}
	return v.owned(m, v.plan.Root.Path, attrs, nobody)
}

// owned attaches a tree whose owner on disk becomes the sandbox's user. Missing
// directories above it become above's.
func (v view) owned(m int, target string, attrs uint64, above owner) error {
	err := attributes(m, attrs)
	if err == nil && v.plan.Identity.HostUID > 0 {
		err = idMap(m, v.user)
	}
	if err != nil {
		unix.Close(m)
		return err
	}
	return v.attach(m, target, above)
}

// registered is what the operator registered, outer paths first: a mount may hold
// the workspace and the workspace a mount.
func (v view) registered() []step {
	at := map[string]step{v.plan.Root.Path: {"workspace", v.workspace}}
	for _, b := range v.plan.Mounts {
		at[b.Target] = step{"mount", func() error { return v.bind(b.Source, b.Target) }}
	}
	for _, b := range v.plan.Caches {
		at[b.Target] = step{"cache", func() error { return v.cache(b) }}
	}
	var steps []step
	for _, target := range slices.Sorted(maps.Keys(at)) { // a path sorts before what it holds
		steps = append(steps, at[target])
	}
	return steps
}

func (v view) cache(b sandbox.Bind) error {
	m, err := clonePath(b.Source, false)
	if err != nil {
		return err
	}
	if err := v.owned(m, b.Target, quiet, v.user); err != nil {
		return fmt.Errorf("cache %s: %w", b.Target, err)
	}
	return nil
}

func (v view) seal() error { return sealed(v.root) }

// sealed makes one mount read-only; the mounts in it keep their own say.
func sealed(root int) error {
	return unix.MountSetattr(root, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// mountBelow returns a mount point below root, "" if there is none.
func mountBelow(root string) (string, error) {
	b, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return "", err
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) > 4 && strings.HasPrefix(unescape.Replace(f[4]), root+"/") {
			return unescape.Replace(f[4]), nil
		}
	}
	return "", nil
}
