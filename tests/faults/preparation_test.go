package faults_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// helperPair is a helper by hand and our end of its preparation socket.
func helperPair(t testing.TB) (*exec.Cmd, int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "preparation")
	t.Cleanup(func() {
		unix.Close(fds[0])
		theirs.Close()
	})
	stage := filepath.Join(t.TempDir(), "stage")
	if err := os.Mkdir(stage, 0o711); err != nil {
		t.Fatal(err)
	}
	cmd := part(t, "codespace-helper", "serve", stage)
	cmd.ExtraFiles = []*os.File{theirs}
	return cmd, fds[0]
}

// harmless is a request that the helper answers and that builds nothing.
const harmless = `{"version":3,"id":1,"verb":"release","sandbox":"none"}`

// hostile are datagrams after which a helper must not go on.
var hostile = map[string][]byte{
	"garbage":            []byte("\x00\x01\x02 garbage"),
	"half a request":     []byte(harmless[:30]),
	"a newer version":    []byte(strings.Replace(harmless, `"version":3`, `"version":4`, 1)),
	"an older version":   []byte(strings.Replace(harmless, `"version":3`, `"version":0`, 1)),
	"no version":         []byte(strings.Replace(harmless, `"version":3,`, "", 1)),
	"a list":             []byte("[]"),
	"a huge datagram":    []byte(harmless + strings.Repeat(" ", 100<<10)),
	"a number too large": []byte(strings.Replace(harmless, `"id":1`, `"id":1e99`, 1)),
}

func TestHelperRefusesHostileRequests(t *testing.T) {
	for name, datagram := range hostile {
		t.Run(name, func(t *testing.T) {
			cmd, sock := helperPair(t)
			if err := unix.Sendto(sock, datagram, 0, nil); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, cmd)
		})
	}
	t.Run("descriptors", func(t *testing.T) {
		cmd, sock := helperPair(t)
		if err := unix.Sendmsg(sock, []byte(harmless), unix.UnixRights(0, 1), nil, 0); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, cmd)
	})
	t.Run("too many descriptors", func(t *testing.T) {
		cmd, sock := helperPair(t)
		if err := unix.Sendmsg(sock, []byte(harmless), unix.UnixRights(make([]int, 200)...), nil, 0); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, cmd)
	})
}

func TestHelperRefusesWrongStart(t *testing.T) {
	for _, args := range [][]string{{}, {"serve"}, {"serve", "a", "b"}, {"nonsense"}, {"factory"}, {"init"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			cmd := part(t, "codespace-helper", args...)
			p := start(t, cmd)
			p.wait(t, exitLimit) // "factory" without a socket has nobody to serve and just ends
			wantNobodyBut(t)
		})
	}
	t.Run("no descriptor", func(t *testing.T) {
		wantRefused(t, part(t, "codespace-helper", "serve", t.TempDir()))
	})
	t.Run("a device", func(t *testing.T) {
		null, err := os.Open("/dev/null")
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		cmd := part(t, "codespace-helper", "serve", t.TempDir())
		cmd.ExtraFiles = []*os.File{null}
		wantRefused(t, cmd)
	})
}

// TestHelperAnswersWhatItCannotDo is the control of the hostile requests: a helper
// that lives answers, also to requests it refuses, and ends with its socket.
func TestHelperAnswersWhatItCannotDo(t *testing.T) {
	cmd, sock := helperPair(t)
	p := start(t, cmd)
	cmd.ExtraFiles[0].Close() // now ours is the only other end
	for request, want := range map[string]string{
		harmless:                                                        `{"id":1}`,
		`{"version":3,"id":2,"verb":"nonsense"}`:                        `"failed"`,
		`{"version":3,"id":3,"verb":"prepare"}`:                         `"failed"`,
		`{"version":3,"id":4,"verb":"prepare","plan":{}}`:               `"failed"`,
		`{"version":3,"id":5,"verb":"prepare","plan":{"id":"../../x"}}`: `"failed"`,
		`{"version":3,"id":6,"verb":"cell","sandbox":"none"}`:           `"failed"`,
	} {
		if err := unix.Sendto(sock, []byte(request), 0, nil); err != nil {
			t.Fatal(err)
		}
		if said := receive(t, sock); !strings.Contains(said, want) {
			t.Errorf("%s is answered with %s", request, said)
		}
	}
	unix.Close(sock)
	if code := p.wait(t, exitLimit); code != 0 {
		t.Errorf("exit %d after the end of its socket; stderr: %s", code, &p.stderr)
	}
	wantNobodyBut(t)
}

func receive(t testing.TB, sock int) string {
	t.Helper()
	limit := unix.NsecToTimeval(int64(exitLimit / time.Nanosecond))
	if err := unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	n, _, err := unix.Recvfrom(sock, buf, 0)
	for err == unix.EINTR { // the runtime's own signals
		n, _, err = unix.Recvfrom(sock, buf, 0)
	}
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	return string(buf[:n])
}
