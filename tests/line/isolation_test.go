package line_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"codespace/tests/need"
)

// listener takes connections and counts them.
type listener struct {
	net.Listener
	count chan int // its only value is how many there were
}

func listen(t *testing.T, network, address string) *listener {
	t.Helper()
	l, err := net.Listen(network, address)
	must(t, err)
	counted := &listener{l, make(chan int, 1)}
	go func() {
		n := 0
		for {
			c, err := l.Accept()
			if err != nil {
				counted.count <- n
				return
			}
			c.Close()
			n++
		}
	}()
	return counted
}

// close gives the number of connections; all that were made are in it, because
// a listener takes them in the order they were made and last is the test's own.
func (l *listener) close(t *testing.T) int {
	t.Helper()
	last, err := net.Dial(l.Addr().Network(), l.Addr().String())
	must(t, err)
	last.Read(make([]byte, 1)) // until it was taken
	last.Close()
	l.Close()
	return <-l.count - 1
}

func TestNoWayToTheHost(t *testing.T) {
	s := startProbing(t, workspace(t))
	addresses := map[string]string{"tcp": "127.0.0.1:0", "unix": fmt.Sprintf("@line-%d", os.Getpid())}
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		l.Close()
		addresses["tcp6"] = "[::1]:0"
	}
	for network, address := range addresses {
		l := listen(t, network, address)
		dial := probe(t, "dial", network, l.Addr().String())
		if out := outside(t, dial); out != "dial ok\n" {
			t.Errorf("%s: control: outside %q", network, out)
		}
		if out := s.says(dial...); out != "dial ECONNREFUSED\n" && out != "dial ENETUNREACH\n" && out != "dial EADDRNOTAVAIL\n" {
			t.Errorf("%s: inside %q", network, out)
		}
		if n := l.close(t); n != 1 {
			t.Errorf("%s: the listener saw %d connections, want only the control's", network, n)
		}
	}
	for _, address := range []string{"192.0.2.1:80", "8.8.8.8:53", "169.254.169.254:80"} {
		if out := s.says(probe(t, "dial", "tcp", address)...); out != "dial ENETUNREACH\n" {
			t.Errorf("%s: %q", address, out)
		}
	}
}

func TestOwnLoopback(t *testing.T) {
	s := startProbing(t, workspace(t))
	if out := s.says(probe(t, "loopback")...); !strings.Contains(out, "accept ok\n") || !strings.Contains(out, "dial ok\n") {
		t.Errorf("two processes of a command: %q", out)
	}
}

// wants that each line of a probe ends in one of errnos.
func wantsErrnos(t *testing.T, out string, errnos ...string) {
	t.Helper()
	if out == "" {
		t.Error("the probe tried nothing")
	}
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); !slices.Contains(errnos, words[len(words)-1]) {
			t.Errorf("%q, want %v", strings.TrimSpace(line), errnos)
		}
	}
}

func TestNoNamespaces(t *testing.T) {
	need.UserNamespaces(t)
	s := startProbing(t, workspace(t))
	attack := probe(t, "userns")
	wantsErrnos(t, outsideAs(t, attack, nested()), "ok")
	wantsErrnos(t, s.says(attack...), "EPERM")
	if st, out := s.run("unshare", "-Ur", "true"); st.text("exit_code") == "0" {
		t.Errorf("unshare works: %q", out)
	}
}

// nested makes a process root of namespaces of its own, as far as a user of the
// host may go.
func nested() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
}

func TestNoMounts(t *testing.T) {
	need.UserNamespaces(t)
	dir := workspace(t)
	s := startProbing(t, dir)
	attack := probe(t, "mount", dir)
	wantsErrnos(t, outsideAs(t, attack, nested()), "ok")
	wantsErrnos(t, s.says(attack...), "EPERM", "ENOSYS")
}

func TestNoTracing(t *testing.T) {
	s := startProbing(t, workspace(t))
	attack := probe(t, "trace")
	wantsErrnos(t, outside(t, attack), "ok")
	wantsErrnos(t, s.says(attack...), "EPERM")
}

// PID 1 of a cell is ours: whoever got hold of it would have what it has.
func TestPID1IsClosed(t *testing.T) {
	s := startProbing(t, workspace(t))
	wantsErrnos(t, s.says(probe(t, "proc", "self")...), "ok")
	wantsErrnos(t, s.says(probe(t, "proc", "1")...), "EACCES", "EPERM", "ENOENT")
	if out := s.says(shell("kill -KILL 1; kill -STOP 1; echo on")...); !strings.HasSuffix(out, "on\n") {
		t.Errorf("PID 1 takes signals: %q", out)
	}
}

func TestNoKernelSettings(t *testing.T) {
	s := startProbing(t, workspace(t))
	attack := probe(t, "sysctl")
	if os.Geteuid() == 0 && !strings.Contains(outside(t, attack), "writable /proc/sys/kernel/hostname\n") {
		t.Error("control: root outside opens no setting for writing")
	}
	out := s.says(attack...)
	if strings.Contains(out, "writable") || !strings.HasPrefix(out, "seen ") || out == "seen 0\n" {
		t.Errorf("settings inside: %.300q", out)
	}
}

// On the host a file of a command belongs to the owner of the workspace, who may
// be root: whoever on the host runs one that is set-user-ID runs it as that owner.
func TestNoSetuidFiles(t *testing.T) {
	dir, control := workspace(t), workspace(t)
	s := startProbing(t, dir)
	wantsErrnos(t, outside(t, probe(t, "setuid", control)), "ok")
	if n := len(setuidFiles(t, control)); n < 10 {
		t.Fatalf("control: outside there are %d such files", n)
	}
	_, out := s.run(probe(t, "setuid", dir)...)
	if found := setuidFiles(t, dir); len(found) > 0 {
		t.Errorf("set-user-ID or set-group-ID on the host are %v; tried: %s", found, out)
	}
}

func setuidFiles(t *testing.T, dir string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if lstat(t, filepath.Join(dir, e.Name())).Mode&(syscall.S_ISUID|syscall.S_ISGID) != 0 {
			found = append(found, e.Name())
		}
	}
	return found
}

func TestMountsOfTheHostStay(t *testing.T) {
	before := contents(t, "/proc/self/mountinfo")
	dir := workspace(t)
	s := start(t, dir)
	for range 18 {
		s.says("true")
	}
	s.close()
	for range 2 {
		run(t, dir, "--", "true").wants(t, 0)
	}
	if after := contents(t, "/proc/self/mountinfo"); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
