package need_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codespace/tests/need"
)

// recorder is a test that writes down how it would have ended.
type recorder struct {
	testing.TB
	end string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, a ...any) { r.stop("skip: " + fmt.Sprintf(format, a...)) }

func (r *recorder) Fatalf(format string, a ...any) { r.stop("fail: " + fmt.Sprintf(format, a...)) }

func (r *recorder) stop(end string) {
	r.end = end
	panic(r)
}

// end is "" where the test would have gone on.
func end(test func(testing.TB)) string {
	r := &recorder{}
	func() {
		defer func() {
			if p := recover(); p != nil && p != r {
				panic(p)
			}
		}()
		test(r)
	}()
	return r.end
}

func noProgram(t testing.TB) { need.Command(t, "no-such-program") }

func TestSkipNamesItsFeature(t *testing.T) {
	t.Setenv("CODESPACE_MUST_HAVE", "")
	if got := end(noProgram); got != "skip: needs no-such-program: no such program on PATH" {
		t.Error(got)
	}
}

func TestSkipOfWhatMustBeThereFails(t *testing.T) {
	t.Setenv("CODESPACE_MUST_HAVE", "gcc,no-such-program")
	if got := end(noProgram); !strings.HasPrefix(got, "fail: needs no-such-program, which this machine must have") {
		t.Error(got)
	}
}

func TestNameMustMatchWhole(t *testing.T) {
	t.Setenv("CODESPACE_MUST_HAVE", "no-such-program-either")
	if got := end(noProgram); !strings.HasPrefix(got, "skip: ") {
		t.Error(got)
	}
}

func TestWhatIsThereGoesOn(t *testing.T) {
	if got := end(func(t testing.TB) { need.Command(t, "true") }); got != "" {
		t.Error(got)
	}
}

func TestOneOfRootAndPlainUserGoesOn(t *testing.T) {
	t.Setenv("CODESPACE_MUST_HAVE", "")
	root, plain := end(need.Root), end(need.PlainUser)
	if (root == "") == (plain == "") {
		t.Errorf("root: %q, plain user: %q", root, plain)
	}
}

func TestBinaryIsLookedForAbove(t *testing.T) {
	top := t.TempDir()
	built := filepath.Join(top, "bin", "codespace")
	for _, dir := range []string{filepath.Dir(built), filepath.Join(top, "tests", "x")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(top, "tests", "x"))
	t.Setenv("CODESPACE_MUST_HAVE", "")
	missing := func(t testing.TB) { need.Binary(t, "codespace") }
	if got := end(missing); got != "skip: needs codespace: not built: run make build" {
		t.Error(got)
	}
	if err := os.WriteFile(built, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := need.Binary(t, "codespace"); got != built {
		t.Errorf("got %s, want %s", got, built)
	}
}

func TestUserNamespacesGoOnHere(t *testing.T) {
	need.UserNamespaces(t)
}
