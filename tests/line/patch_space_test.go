package line_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"codespace/tests/need"
)

// TestPatchOnAFullDisk applies a patch to a file system that has room for more and more
// of it: all of it is applied, or nothing is changed.
func TestPatchOnAFullDisk(t *testing.T) {
	need.Root(t)
	dir := workspace(t)
	s := open(t, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", `mount -t tmpfs -o size=1M none "$0" && exec "$@"`, dir}, cmd.Args...)
		cmd.Path = need.Command(t, "sh")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}, "-w", dir)
	there := fmt.Sprintf("/proc/%d/root%s", s.cmd.Process.Pid, dir)
	page := strings.Repeat("y", os.Getpagesize()-3)
	before := disk{"a": "0\n" + page, "b": "0\n" + page, "c": "0\n" + page, "d/e": "0\n"}
	text := around("*** Update File: a\n@@\n-0\n+1\n*** Add File: n/m\n+x\n*** Update File: b\n*** Move to: n/b\n@@\n-0\n+1\n*** Delete File: d/e\n*** Update File: c\n@@\n-0\n+1\n")
	ended := map[string]int{}
	for room := range 12 {
		lay(t, there, before, nil)
		filled(t, there+"/ballast", room)
		was := seen(t, there, false)
		a := s.patch(text, nil)
		ended[a.text("code")+a.text("status")]++
		if !a.isError {
			break
		}
		a.refused(t, "FILE_OPERATION_FAILED").below("details").wants(t, fields{"status": "failed_rolled_back"})
		if !strings.Contains(a.text("message"), "no space left") || a.text("operation_id") == "" {
			t.Errorf("room for %d pages: %v", room, a.fields)
		}
		same(t, seen(t, there, false), was)
	}
	t.Logf("page by page: %v", ended)
	if ended["applied"] != 1 || ended["FILE_OPERATION_FAILED"] < 2 {
		t.Errorf("it ended %v", ended)
	}
	same(t, seen(t, there+"/n", false), laid(disk{"m": "x\n", "b": "1\n" + page + "\n"}, nil))
}

// filled fills a file system but for some pages.
func filled(t testing.TB, at string, room int) {
	t.Helper()
	var st syscall.Statfs_t
	must(t, syscall.Statfs(at[:strings.LastIndexByte(at, '/')], &st))
	must(t, os.WriteFile(at, make([]byte, (int(st.Bfree)-room)*int(st.Bsize)), 0o644))
}
