// Package need is the only way by which a test here may be skipped: it asks for
// a feature of the machine, and the test stops there if the machine lacks it.
//
// Every skip names its feature. CODESPACE_MUST_HAVE lists features, separated by
// commas, that whoever runs the tests knows to be there: lacking one of those is
// a failure, so that a green run cannot hide what it did not run.
package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Root needs uid 0: the feature "root".
func Root(t testing.TB) {
	t.Helper()
	Feature(t, "root", os.Geteuid() == 0, "the tests run as a plain user")
}

// PlainUser needs a uid other than 0: the feature "plain-user".
func PlainUser(t testing.TB) {
	t.Helper()
	Feature(t, "plain-user", os.Geteuid() != 0, "the tests run as root")
}

// Command needs a program on PATH, and is its path: the feature has its name.
func Command(t testing.TB, name string) string {
	t.Helper()
	found, err := exec.LookPath(name)
	Feature(t, name, err == nil, "no such program on PATH")
	return found
}

// Binary needs a program that make build leaves in bin, and is its absolute
// path: the feature has its name. It is looked for in the directories above.
func Binary(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("cannot find the working directory: %v", err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		found := filepath.Join(dir, "bin", name)
		if info, err := os.Stat(found); err == nil && info.Mode().IsRegular() {
			return found
		}
	}
	Feature(t, name, false, "not built: run make build")
	return ""
}

// UserNamespaces needs a process of this user to be let into a user namespace of
// its own: the feature "user-namespaces".
func UserNamespaces(t testing.TB) {
	t.Helper()
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
	}
	err := cmd.Run()
	why := ""
	if err != nil {
		why = "see /proc/sys/user/max_user_namespaces: " + err.Error()
	}
	Feature(t, "user-namespaces", err == nil, why)
}

// Feature is for what the functions above do not know: name is what a skip says
// and CODESPACE_MUST_HAVE lists, why is what is in the way where there is none.
func Feature(t testing.TB, name string, there bool, why string) {
	t.Helper()
	if there {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("CODESPACE_MUST_HAVE"), ","), name) {
		t.Fatalf("needs %s, which this machine must have: %s", name, why)
	}
	t.Skipf("needs %s: %s", name, why)
}
