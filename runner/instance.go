package runner

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"codespace/sandbox"

	"golang.org/x/sys/unix"
)

// Instance is the directory of one running gateway and its runner:
//
//	lock      share-locked by both; free once both are gone
//	groups    the cgroup directories in which sandboxes are made
//	s/        0700, the runner's socket
//	stage-N/  where helper N mounts, in a mount namespace of its own
//
// What a killed instance leaves is this directory and empty cgroups; the next
// start finds the lock free and sweeps both.
type Instance struct {
	dir    string
	lock   *os.File
	stages int
}

// NewInstance sweeps what dead instances left and makes a directory for this one.
func NewInstance() (*Instance, error) {
	unix.Umask(0o022) // what follows says who may read what
	in, err := newInstance()
	for try := 0; try < 3 && errors.Is(err, fs.ErrNotExist); try++ { // swept by another start
		in, err = newInstance()
	}
	return in, err
}

func newInstance() (*Instance, error) {
	base, err := instanceBase()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(base, 0o711); err != nil {
		return nil, fmt.Errorf("cannot make run directory: %w", err)
	}
	if err := ownDirectory(base); err != nil {
		return nil, err
	}
	sweep(base)
	// While it is made others are kept from sweeping what has no lock.
	making, err := lock(base, unix.O_DIRECTORY, unix.LOCK_SH)
	if err != nil {
		return nil, fmt.Errorf("cannot lock run directory: %w", err)
	}
	defer making.Close()
	var b [6]byte
	rand.Read(b[:])
	dir := filepath.Join(base, hex.EncodeToString(b[:]))
	for _, d := range []string{dir, filepath.Join(dir, "s")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, fmt.Errorf("cannot make run directory: %w", err)
		}
	}
	in := &Instance{dir: dir}
	// Until it is locked another start may sweep it: then there is no directory.
	if in.lock, err = lockFile(dir, unix.O_CREAT|unix.O_EXCL, unix.LOCK_SH); err != nil {
		return nil, fmt.Errorf("cannot lock run directory: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "groups"), []byte(strings.Join((sandbox.Host{}).Groups(), "\n")), 0o600); err != nil {
		return nil, fmt.Errorf("cannot make run directory: %w", err)
	}
	return in, os.Chmod(dir, 0o711) // a sandbox's root is searched on the way to its view
}

// OpenInstance is the runner's view of the directory that its gateway made. It
// holds the lock too.
func OpenInstance(dir string) (*Instance, error) {
	lock, err := lockFile(dir, 0, unix.LOCK_SH)
	if err != nil {
		return nil, fmt.Errorf("cannot open run directory: %w", err)
	}
	return &Instance{dir: dir, lock: lock}, nil
}

// Name is unique on this host.
func (in *Instance) Name() string { return filepath.Base(in.dir) }

// Dir is the instance's directory.
func (in *Instance) Dir() string { return in.dir }

// SocketDir is where the runner's socket lies.
func (in *Instance) SocketDir() string { return filepath.Join(in.dir, "s") }

// NewStage makes a mount point for a helper and the prefix of the ids of its
// sandboxes.
func (in *Instance) NewStage() (dir, prefix string, err error) {
	in.stages++
	dir = filepath.Join(in.dir, fmt.Sprintf("stage-%d", in.stages))
	if err := os.Mkdir(dir, 0o711); err != nil {
		return "", "", fmt.Errorf("cannot make stage: %w", err)
	}
	return dir, fmt.Sprintf("%s-%d", in.Name(), in.stages), nil
}

// sweepHelper removes what an ended helper left: its stage and its sandboxes'
// cgroups.
func (in *Instance) sweepHelper(stage, prefix string) {
	unix.Rmdir(stage)
	sweepGroups(in.dir, prefix)
}

// Remove deletes the directory unless the other of gateway and runner still holds
// it; then that one does.
func (in *Instance) Remove() {
	defer in.lock.Close()
	alone := unix.Flock(int(in.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
	if alone && sweepGroups(in.dir, in.Name()) == nil {
		removeInstance(in.dir)
	}
}

// longestBase leaves room for "/<12>/s/runner-<8>" in the 107 bytes of a socket's
// path (unix(7)).
const longestBase = 107 - 31

// instanceBase is /run/codespace for root and a directory of the user's own
// otherwise.
func instanceBase() (string, error) {
	if os.Geteuid() == 0 && unix.Access("/run", unix.W_OK) == nil {
		return "/run/codespace", nil
	}
	d := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "codespace")
	if filepath.IsAbs(d) && len(d) <= longestBase && unix.Access(filepath.Dir(d), unix.W_OK) == nil {
		return d, nil
	}
	return fmt.Sprintf("/tmp/codespace-%d", os.Geteuid()), nil
}

// ownDirectory refuses a directory that somebody else could have prepared.
func ownDirectory(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return fmt.Errorf("cannot use run directory %s: it must be a directory of uid %d that nobody else may write", dir, os.Geteuid())
	}
	return nil
}

// lockFile opens and locks a directory's lock without waiting.
func lockFile(dir string, flags, how int) (*os.File, error) {
	f, err := lock(filepath.Join(dir, "lock"), unix.O_RDWR|flags, how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) && flags&unix.O_CREAT != 0 {
		err = fs.ErrNotExist // a sweep has it and is removing the directory
	}
	return f, err
}

// lock opens and locks a file or directory.
func lock(path string, flags, how int) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(fd, how)
	for err == unix.EINTR {
		err = unix.Flock(fd, how)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "lock"), nil
}

// sweep removes the instances in base whose lock is free. Each is swept while
// its lock is held here, so that two starts never sweep one.
func sweep(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(base, e.Name())
		if !e.IsDir() || len(e.Name()) != 12 {
			continue
		}
		lock, err := lockFile(dir, 0, unix.LOCK_EX)
		if errors.Is(err, fs.ErrNotExist) {
			removeUnfinished(base, dir)
		}
		if err != nil {
			continue // alive, or just being made
		}
		if sweepGroups(dir, e.Name()) == nil { // else the next start tries again
			removeInstance(dir)
		}
		lock.Close()
	}
}

// removeUnfinished removes a directory whose maker died before it had a lock. Who
// makes one holds base share-locked until then.
func removeUnfinished(base, dir string) {
	nobody, err := lock(base, unix.O_DIRECTORY, unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		return
	}
	defer nobody.Close()
	if _, err := os.Lstat(filepath.Join(dir, "lock")); errors.Is(err, fs.ErrNotExist) {
		removeInstance(dir)
	}
}

func sweepGroups(dir, prefix string) error {
	b, err := os.ReadFile(filepath.Join(dir, "groups"))
	if err != nil {
		return nil // it never came to making any
	}
	return sandbox.RemoveGroups(strings.Split(string(b), "\n"), prefix)
}

// removeInstance removes what an instance is made of, by name and never through
// a mount or a link: rmdir and unlink act on the name alone.
func removeInstance(dir string) {
	stages, _ := filepath.Glob(filepath.Join(dir, "stage-*"))
	sockets, _ := filepath.Glob(filepath.Join(dir, "s", "runner-*"))
	for _, f := range append(sockets, filepath.Join(dir, "groups"), filepath.Join(dir, "lock")) {
		unix.Unlink(f)
	}
	for _, d := range append(stages, filepath.Join(dir, "s"), dir) {
		unix.Rmdir(d)
	}
}
