package faults_test

import (
	"os"
	"regexp"
	"testing"
)

// crashes are calls at which the process that makes them is killed: those by which
// run directories come and go, and some of building a sandbox.
var crashes = map[string]int{
	"mkdirat": 6, "flock": 6, "fchmodat": 1, "unlinkat": 4, "listen": 1, "connect": 1, "accept4": 1,
	"unshare": 2, "pivot_root": 1, "move_mount": 2, "sethostname": 1, "seccomp": 1,
}

// instances finds the run directories that a traced program has made.
var instances = regexp.MustCompile(`mkdirat\(AT_FDCWD, "([^"]*/[0-9a-f]{12})"`)

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
				footprint{instance: m[1]}.wantNothingLeft(t)
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
