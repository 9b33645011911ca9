package sandbox_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codespace/policy"
	"codespace/sandbox"
	"codespace/tests/need"
)

// cellUID is the uid of the processes that locked starts, as this test sees it.
func cellUID() int {
	if os.Geteuid() == 0 {
		return 200001
	}
	return os.Geteuid()
}

func buildLocked(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "locked")
	build := exec.Command(need.Command(t, "gcc"), "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-o", binary, "testdata/locked.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build testdata/locked.c: %v\n%s", err, out)
	}
	return binary
}

// locked is the pid of a process that is locked down with that many filters, but
// for what is left out.
func locked(t *testing.T, binary string, filters int, leftOut string) int {
	t.Helper()
	cmd := exec.Command(binary, strconv.Itoa(filters), leftOut)
	if os.Geteuid() == 0 {
		cmd.Args = append(cmd.Args, strconv.Itoa(cellUID()))
	}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); cmd.Wait() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd.Process.Pid
}

func planOf(uid int) sandbox.Plan {
	p := goodPlan()
	p.Identity.HostUID = uid
	return p
}

// A process that is locked down whole gets a receipt; one that lacks any layer the
// kernel can be asked about gets none.
func TestInspectRefusesWhatIsNotLocked(t *testing.T) {
	need.UserNamespaces(t)
	binary := buildLocked(t)
	own := 0
	if b, err := os.ReadFile("/proc/self/status"); err == nil { // a filter on the tests counts too
		_, after, _ := strings.Cut(string(b), "Seccomp_filters:")
		own, _ = strconv.Atoi(strings.Fields(after)[0])
	}
	cases := []struct {
		filters int
		leftOut string
		uid     int
		refused string // what the reason names, "" where there is a receipt
	}{
		{2, "nothing", cellUID(), ""},
		{3, "nothing", cellUID(), ""}, // one of the daemon's own
		{10, "nothing", cellUID(), ""},
		{1 - own, "nothing", cellUID(), "Seccomp"},
		{2, "NoNewPrivs", cellUID(), "NoNewPrivs"},
		{2, "CapBnd", cellUID(), "CapBnd"},
		{2, "CapPrm", cellUID(), "CapPrm"},
		{2, "nothing", cellUID() + 1, "uid"},
	}
	for _, c := range cases {
		r, err := planOf(c.uid).Inspect(locked(t, binary, c.filters, c.leftOut), sandbox.Leaf{})
		var f *sandbox.Failure
		switch {
		case c.refused == "" && (err != nil || len(r.Layers) == 0):
			t.Errorf("%+v: %v", c, err)
		case c.refused != "" && (!errors.As(err, &f) || f.Step != "receipt" || !strings.Contains(f.Reason, c.refused) || r.Digest != ""):
			t.Errorf("%+v: %+v, %v", c, r, err)
		}
	}
	if r, err := planOf(cellUID()).Inspect(1<<22+1, sandbox.Leaf{}); err == nil {
		t.Errorf("a receipt of no process: %+v", r)
	}
	if r, err := planOf(max(os.Getuid(), 1)).Inspect(os.Getpid(), sandbox.Leaf{}); err == nil {
		t.Errorf("a receipt of this process: %+v", r)
	}
}

// The digest is that of the layers, the same for the same and another for others.
func TestReceiptNamesItsLayers(t *testing.T) {
	need.UserNamespaces(t)
	pid := locked(t, buildLocked(t), 2, "nothing")
	base := planOf(cellUID())
	all := sandbox.Leaf{Memory: "/m", PIDs: "/p", Unified: "/u"}
	digests := map[string]string{}
	add := func(name string, p sandbox.Plan, l sandbox.Leaf) sandbox.Receipt {
		t.Helper()
		r, err := p.Inspect(pid, l)
		again, _ := p.Inspect(pid, l)
		if err != nil || again.Digest != r.Digest || !slices.Equal(again.Layers, r.Layers) {
			t.Fatalf("%s: %+v, then %+v: %v", name, r, again, err)
		}
		b, _ := json.Marshal(r.Layers)
		sum := sha256.Sum256(b)
		if r.Digest != "sha256:"+hex.EncodeToString(sum[:]) {
			t.Errorf("%s: %s is not the digest of %s", name, r.Digest, b)
		}
		if other, taken := digests[r.Digest]; taken {
			t.Errorf("%s and %s have one digest", name, other)
		}
		digests[r.Digest] = name
		return r
	}
	strict := add("strict", base, all)
	if !slices.Contains(strict.Layers, "identity: host uid of its own, id-mapped workspace") || !slices.Contains(strict.Layers, "enforcement: strict") {
		t.Errorf("%q", strict.Layers)
	}
	p := base
	p.Enforce = policy.BestEffort
	add("best effort", p, all)
	p = base
	p.Identity.DiskUID = p.Identity.HostUID
	add("owner", p, all)
	some := add("no memory cgroup", base, sandbox.Leaf{PIDs: "/p", Unified: "/u"})
	add("no pids cgroup", base, sandbox.Leaf{Memory: "/m", Unified: "/u"})
	none := add("no cgroup", base, sandbox.Leaf{})
	if !slices.Contains(some.Layers, "cgroup: none for memory (not enforced)") || !slices.Contains(none.Layers, "cgroup: none for memory and cpu (not enforced)") {
		t.Errorf("a missing limit is not said: %q, %q", some.Layers, none.Layers)
	}
}
