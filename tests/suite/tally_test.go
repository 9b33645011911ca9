package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codespace/tests/need"
)

// counted runs go test on one file, as the suite does, and counts.
func counted(t *testing.T, body string) (*tally, string) {
	t.Helper()
	need.Command(t, "go")
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.26\n", "x_test.go": "package x\n\n" + body} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	return run{"anybody", "", []string{"go", "test", "-json", "-count=1", "./..."}}.do(&out), out.String()
}

func TestEveryOutcomeIsCountedOnce(t *testing.T) {
	got, out := counted(t, `import "testing"

func TestPass(t *testing.T) {}
func TestFail(t *testing.T) { t.Error("wanted more") }
func TestSkip(t *testing.T) { t.`+"Skip"+`("needs gcc: none") }
func TestSub(t *testing.T) {
	t.Run("a", func(t *testing.T) {})
	t.Run("b", func(t *testing.T) {})
}
`)
	if got.passed != 3 || got.failed != 1 || got.skipped != 1 {
		t.Errorf("%d passed, %d failed, %d skipped", got.passed, got.failed, got.skipped)
	}
	for _, want := range []string{"FAIL x TestFail", "wanted more", "skip x TestSkip: needs gcc: none", "fail x ("} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestFailureBesideTestsCounts(t *testing.T) {
	for name, body := range map[string]string{
		"does not build": "func TestX(t *testing.T) {}\n",
		"dies":           "import (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestPass(t *testing.T) {}\n\nfunc TestX(t *testing.T) { println(\"last words\"); os.Exit(3) }\n",
		"TestMain":       "import (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestPass(t *testing.T) {}\n\nfunc TestMain(m *testing.M) { m.Run(); os.Exit(1) }\n",
		"a parent":       "import \"testing\"\n\nfunc TestX(t *testing.T) { t.Run(\"a\", func(*testing.T) {}); t.Error(\"after all\") }\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got, out := counted(t, body); got.failed != 1 {
				t.Errorf("%d failed\n%s", got.failed, out)
			}
		})
	}
}

func TestRunThatNeverStartsFails(t *testing.T) {
	got := run{"anybody", "", []string{filepath.Join(t.TempDir(), "none")}}.do(io.Discard)
	if got.failed != 1 {
		t.Errorf("%d failed", got.failed)
	}
}

func TestRunStrikesTheFeatureItLacks(t *testing.T) {
	t.Setenv("CODESPACE_MUST_HAVE", "gcc,root,plain-user")
	cmd := exec.Command("sh", "-c", `printf %s "$CODESPACE_MUST_HAVE"`)
	cmd.Env = run{lacks: "root"}.environment()
	if out, err := cmd.Output(); err != nil || string(out) != "gcc,plain-user" {
		t.Errorf("%q, %v", out, err)
	}
}
