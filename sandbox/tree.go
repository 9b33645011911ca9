package sandbox

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Tree names the PID 1 of a command, for good: a pid is used again, but not with
// the same birth. Once that process is gone, so is every process of the command,
// whatever became of the runner.
type Tree struct {
	PID   int    `json:"pid"`
	Birth uint64 `json:"birth"` // clock ticks after boot (proc_pid_stat(5)); 0 names nothing
}

// AwaitGone waits, at most for limit, until the tree is gone, and reports whether it
// is known to be.
func (t Tree) AwaitGone(limit time.Duration) bool {
	fd, err := unix.PidfdOpen(t.PID, 0)
	if err != nil {
		return err == unix.ESRCH
	}
	defer unix.Close(fd)
	if birth(t.PID) != t.Birth {
		return true // the pid is somebody else's by now
	}
	for end := time.Now().Add(limit); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, max(int(time.Until(end).Milliseconds()), 0))
		if err != unix.EINTR {
			return n > 0
		}
	}
}

func birth(pid int) uint64 {
	b, err := slurp(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 20 {
		return 0
	}
	n, _ := strconv.ParseUint(f[19], 10, 64)
	return n
}
