// Command suite runs every test of this program and counts.
//
// Started by root it runs them twice, as root and, by tests/plain-user, as a
// plain user; started by anybody else once, and says so. Its last line is the
// sum of both, and its exit status is 0 only if every test that ran passed and
// each run had one that did. A skip is printed with what it needed.
//
//	suite [flags of go test]
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	asRoot := run{"root", "plain-user", append([]string{"go", "test", "-json", "-count=1", "-timeout=20m"}, append(os.Args[1:], "./...")...)}
	asPlain := run{"plain-user", "root", append([]string{"bash", "tests/plain-user"}, os.Args[1:]...)}
	runs := []run{asRoot, asPlain}
	if os.Geteuid() != 0 {
		fmt.Println("suite: not started by root, so the run as root is left out")
		runs = []run{{asPlain.name, asPlain.lacks, asRoot.command}}
	}
	sum, well := counts{}, true
	for _, r := range runs {
		t := r.do(os.Stdout)
		sum.passed, sum.failed, sum.skipped = sum.passed+t.passed, sum.failed+t.failed, sum.skipped+t.skipped
		well = well && t.passed > 0 && t.failed == 0
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", sum.passed, sum.failed, sum.skipped)
	if !well {
		os.Exit(1)
	}
}

// run is the suite once, as one kind of user.
type run struct {
	name    string
	lacks   string // the feature of tests/need that this kind of user cannot have
	command []string
}

// do runs and counts. A run that fails without a failed test counts as one.
func (r run) do(out io.Writer) *tally {
	fmt.Fprintf(out, "suite: as %s\n", r.name)
	t := newTally(out)
	if err := r.read(t); err != nil && t.failed == 0 {
		fmt.Fprintf(out, "FAIL: as %s: %v\n", r.name, err)
		t.failed++
	}
	fmt.Fprintf(out, "suite: as %s there were %d passed, %d failed, %d skipped\n", r.name, t.passed, t.failed, t.skipped)
	return t
}

func (r run) read(t *tally) error {
	cmd := exec.Command(r.command[0], r.command[1:]...)
	cmd.Stderr, cmd.Env = os.Stderr, r.environment()
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return cmd.Wait()
		}
		t.line(line)
	}
}

// environment is ours with the feature that this run lacks struck from the list
// of those it must have.
func (r run) environment() []string {
	features := strings.Split(os.Getenv("CODESPACE_MUST_HAVE"), ",")
	features = slices.DeleteFunc(features, func(f string) bool { return f == r.lacks })
	return append(os.Environ(), "CODESPACE_MUST_HAVE="+strings.Join(features, ","))
}
