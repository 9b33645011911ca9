package sandbox

import (
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The files of /proc and of cgroups are read and written by their descriptors: an
// os.File of one is first tried with the poller, which takes twice the calls.

// slurp reads such a file whole. Most have a few lines; a status names every group.
func slurp(path string) ([]byte, error) {
	fd, err := again(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	b, n := make([]byte, 4<<10), 0
	for {
		if n == len(b) {
			b = append(b, make([]byte, n)...)
		}
		m, err := again(func() (int, error) { return unix.Read(fd, b[n:]) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if m == 0 {
			return b[:n], nil
		}
		n += m
	}
}

// put writes a number to a file of a cgroup.
func put(dir, name string, v int64) error {
	path := filepath.Join(dir, name)
	fd, err := again(func() (int, error) { return unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if _, err := again(func() (int, error) { return unix.Write(fd, strconv.AppendInt(nil, v, 10)) }); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// again makes a call until no signal interrupts it.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

// number is the number that a file of a cgroup holds, 0 if it holds none.
func number(dir, name string) int64 {
	b, _ := slurp(filepath.Join(dir, name))
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}

// keyed is the number behind a key in a file of a cgroup, 0 if there is none.
func keyed(dir, name, key string) int64 {
	b, _ := slurp(filepath.Join(dir, name))
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), key+" "); ok {
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
	}
	return 0
}
