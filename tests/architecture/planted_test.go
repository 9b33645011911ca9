package architecture_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codespace/tests/architecture"
)

// plant is a tree with nothing wrong in it, to put one thing wrong into.
func plant(t *testing.T) map[string]string {
	return map[string]string{
		"go.mod":     "module codespace\n\ngo 1.26.0\n\nrequire golang.org/x/sys " + sys(t) + "\n",
		"go.sum":     lines(t, "../../go.sum", "golang.org/x/sys "+sys(t)),
		".gitignore": "/bin/\n",
		"README.md":  "a document\n",
		"bin/tool":   "a build result\n",
		"tests/architecture/rules.txt": `
top go.*        module
top *.md        documents
top .gitignore  build results
top cmd         wiring
top gateway     decisions
top helper      sandboxes
top runner      processes
top tests       tests
later top docs  later
module golang.org/x/sys v0. system calls
package cmd/codespace wiring
  ours gateway wired
package gateway decisions
  ours runner asks
package runner processes
  outside golang.org/x/sys/unix calls
  test ours helper starts one
package helper sandboxes
later package ledger later
later binary cmd/codespace-patch plain later
  never net no way out
binary cmd/codespace plain decides
  never codespace/helper/... another process
`,
		"tests/architecture/models.txt":     "# none\n",
		"tests/architecture/exceptions.txt": "at-most 0\n",
		"cmd/codespace/main.go":             "// Command codespace is typed.\npackage main\n\nimport _ \"codespace/gateway\"\n\nfunc main() {}\n",
		"gateway/gateway.go":                "// Package gateway decides.\npackage gateway\n\nimport _ \"codespace/runner\"\n",
		"runner/runner.go":                  "// Package runner runs.\npackage runner\n\nimport _ \"golang.org/x/sys/unix\"\n",
		"runner/runner_test.go":             "package runner_test\n\nimport (\n\t_ \"codespace/helper\"\n\t_ \"codespace/runner\"\n)\n",
		"helper/helper.go":                  "// Package helper helps.\npackage helper\n",
	}
}

// sys is the version of x/sys in this program's go.mod: one that is at hand.
func sys(t *testing.T) string {
	return strings.Fields(strings.TrimPrefix(strings.TrimSpace(lines(t, "../../go.mod", "golang.org/x/sys ")), "require"))[1]
}

func lines(t *testing.T, name, beginning string) string {
	t.Helper()
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(body)) {
		if strings.Contains(line, beginning) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func lay(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func source(t *testing.T, files map[string]string) []architecture.Violation {
	t.Helper()
	found, err := architecture.Source(lay(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func only(t *testing.T, found []architecture.Violation, want string) {
	t.Helper()
	if len(found) != 1 || !strings.HasPrefix(found[0].String(), want) {
		t.Errorf("want only %q\n got %v", want, found)
	}
}

// planted is one thing put wrong: files written over the tree ("+" before a text
// adds to what is there), and how the one violation must begin.
type planted struct {
	name  string
	files map[string]string
	want  string
}

func (p planted) lay(t *testing.T) map[string]string {
	files := plant(t)
	for name, body := range p.files {
		if more, ok := strings.CutPrefix(body, "+"); ok {
			body = files[name] + more
		}
		files[name] = body
	}
	return files
}

func TestPlantIsClean(t *testing.T) {
	if found := source(t, plant(t)); len(found) != 0 {
		t.Errorf("source: %v", found)
	}
	if found, err := architecture.Links(lay(t, plant(t))); len(found) != 0 || err != nil {
		t.Errorf("links: %v, %v", found, err)
	}
}

func TestPlantedViolationIsNamed(t *testing.T) {
	for _, table := range [][]planted{lattice, bans, sizes, descriptors} {
		for _, p := range table {
			t.Run(p.name, func(t *testing.T) { only(t, source(t, p.lay(t)), p.want) })
		}
	}
}

func TestPlantedLinkIsNamed(t *testing.T) {
	rules := plant(t)["tests/architecture/rules.txt"]
	for _, p := range []planted{
		{"ours, two steps away", map[string]string{
			"runner/runner.go":             "+import _ \"codespace/helper\"\n",
			"tests/architecture/rules.txt": strings.Replace(rules, "test ours helper", "ours helper", 1),
		}, "link: cmd/codespace: must not link codespace/helper: codespace/cmd/codespace -> codespace/gateway -> codespace/runner -> codespace/helper"},
		{"another module, through ours", map[string]string{
			"tests/architecture/rules.txt": rules + "  never golang.org/x/sys/... banned\n",
		}, "link: cmd/codespace: must not link golang.org/x/sys/unix: codespace/cmd/codespace -> codespace/gateway -> codespace/runner"},
		{"the standard library, through its own", map[string]string{
			"gateway/gateway.go":           "+import _ \"net/http/httptest\"\n",
			"tests/architecture/rules.txt": rules + "  never net/http banned\n",
		}, "link: cmd/codespace: must not link net/http: codespace/cmd/codespace -> codespace/gateway -> net/http/httptest -> net/http"},
		{"by a part of its name", map[string]string{
			"tests/architecture/rules.txt": rules + "  never *x/sy* banned\n",
		}, "link: cmd/codespace: must not link golang.org/x/sys/unix"},
		{"behind a build tag", map[string]string{
			"runner/hidden.go":             "//go:build never\n\npackage runner\n\nimport _ \"codespace/helper\"\n",
			"tests/architecture/rules.txt": strings.Replace(rules, "test ours helper", "ours helper", 1),
		}, "link: cmd/codespace: must not link codespace/helper"},
	} {
		t.Run(p.name, func(t *testing.T) {
			dir := lay(t, p.lay(t))
			found, err := architecture.Links(dir)
			if err != nil {
				t.Fatal(err)
			}
			only(t, found, p.want)
			if found, err := architecture.Source(dir); len(found) != 0 || err != nil {
				t.Errorf("source: %v, %v", found, err)
			}
		})
	}
}

// A name is taken from the list itself, so that this file holds none.
func TestEveryModelNameIsNamed(t *testing.T) {
	body, err := os.ReadFile("models.txt")
	if err != nil {
		t.Fatal(err)
	}
	files := plant(t)
	files["tests/architecture/models.txt"] = string(body)
	names := 0
	for line := range strings.Lines(string(body)) {
		name := strings.TrimSpace(line)
		if name == "" || name[0] == '#' {
			continue
		}
		names++
		tree := maps.Clone(files)
		tree["runner/runner.go"] += "\n// See https://" + strings.ToUpper(name) + "/v1.\n"
		only(t, source(t, tree), "model: runner/runner.go (line 6): names "+strings.ToUpper(name))
	}
	if names == 0 {
		t.Error("the list is empty")
	}
}

func TestUnreadableRulesAreRefused(t *testing.T) {
	for _, line := range []string{"package", "package a", "module a v1", "outsider a b", "binary a plain"} {
		files := plant(t)
		files["tests/architecture/rules.txt"] = line + "\n"
		if _, err := architecture.Source(lay(t, files)); err == nil {
			t.Errorf("%q: no error", line)
		}
	}
}

// A reader of files would miss what is behind a link, and a compiler would not.
func TestPlantedLinkInTheTreeIsNamed(t *testing.T) {
	dir := lay(t, plant(t))
	if err := os.Symlink("/elsewhere/more.go", filepath.Join(dir, "runner", "more.go")); err != nil {
		t.Fatal(err)
	}
	found, err := architecture.Source(dir)
	if err != nil {
		t.Fatal(err)
	}
	only(t, found, "top: runner/more.go: is neither a file nor a directory")
}
