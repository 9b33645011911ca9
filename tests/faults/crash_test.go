package faults_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// crashes are calls at which the process that makes them is killed: those by which
// run directories come and go, and some of building a sandbox.
var crashes = map[string]int{
	"mkdirat": 6, "flock": 3, "fchmodat": 1, "unlinkat": 4, "listen": 1, "connect": 1, "accept4": 1,
	"unshare": 2, "pivot_root": 1, "move_mount": 2, "sethostname": 1, "seccomp": 1,
}

// instances finds the run directories that a traced program has made.
var instances = regexp.MustCompile(`mkdirat\(AT_FDCWD, "([^"]*/[0-9a-f]{12})"`)

// wantSwept wants nothing left of an instance. A directory that was killed before it
// had its lock could be one that is just being made: it goes when it is old.
func (p place) wantSwept(t testing.TB, instance string) {
	t.Helper()
	f := footprint{instance: instance}
	_, err := os.Lstat(filepath.Join(instance, "lock"))
	if _, there := os.Lstat(instance); err != nil && there == nil {
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(instance, old, old); err != nil {
			t.Fatal(err)
		}
		p.wantRunWorks(t)
	}
	f.wantNothingLeft(t)
}

// TestKilledAtEachStep kills a process at each step of coming and going, and wants
// nothing left after the next start.
func TestKilledAtEachStep(t *testing.T) {
	p := newPlace(t)
	faults := faultsOf(crashes, share(6), "signal=KILL")
	clean, seen := 0, 0
	for _, f := range faults {
		ok := t.Run(f.String(), func(t *testing.T) {
			f.besides = "mkdirat,"
			r, log := p.under(t, f, "true")
			wantNobodyBut(t)
			p.wantRunWorks(t)
			b, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range instances.FindAllStringSubmatch(string(b), -1) {
				seen++
				p.wantSwept(t, m[1])
			}
			if t.Failed() {
				t.Logf("exit %d, stderr: %s", r.status(), &r.stderr)
			}
		})
		if ok {
			clean++
		}
	}
	t.Logf("%d of %d left nothing; %d run directories were looked at", clean, len(faults), seen)
	if seen < len(faults)/2 {
		t.Error("control: most run directories were not seen")
	}
}
