package architecture_test

import (
	"fmt"
	"strings"
	"testing"
)

const exceptionsOf = "tests/architecture/exceptions.txt"

// repeat writes a line n times, with a number in it where it has a %d.
func repeat(line string, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(line, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

func tall(n int) string {
	return "package runner\n\nfunc tall() {\n" + repeat("\tprintln()\n", n-2) + "}\n"
}

const deep = "package runner\n\nfunc deep(a []int) {\n\tfor range a {\n\t\tif len(a) > 1 {\n\t\t\tswitch {\n\t\t\tcase true:\n\t\t\t\tgo func() {\n\t\t\t\t\t// HERE\n\t\t\t\t}()\n\t\t\t}\n\t\t}\n\t}\n}\n"

var sizes = []planted{
	{"a file of 401 lines", map[string]string{"runner/more.go": "package runner\n" + repeat("\n", 400)},
		"file-lines: runner/more.go: 401, the ceiling is 400"},
	{"a test of 401 lines", map[string]string{"runner/more_test.go": "package runner\n" + repeat("\n", 400)},
		"file-lines: runner/more_test.go: 401, the ceiling is 400"},
	{"a C file of 401 lines", map[string]string{"helper/cell.c": repeat("\n", 401)},
		"file-lines: helper/cell.c: 401, the ceiling is 400"},
	{"a fifth C file", map[string]string{"helper/1.c": "\n", "helper/2.c": "\n", "helper/3.c": "\n", "helper/4.c": "\n", "runner/5.c": "\n"},
		"c-files: helper: 5, the ceiling is 4"},
	{"a function of 61 lines", map[string]string{"runner/more.go": tall(61)},
		"function-lines: runner/more.go:tall: 61, the ceiling is 60"},
	{"five parameters", map[string]string{"runner/more.go": "package runner\n\nfunc wide(a, b int, c, d string, e ...any) {}\n"},
		"parameters: runner/more.go:wide: 5, the ceiling is 4"},
	{"a fourth level", map[string]string{"runner/more.go": strings.Replace(deep, "// HERE", "for {\n}", 1)},
		"nesting: runner/more.go:deep: 4, the ceiling is 3"},
	{"31 exported names", map[string]string{"runner/more.go": "package runner\n\nvar X int\n" + repeat("func F%d() {}\n", 30)},
		"exported: runner: 31, the ceiling is 30"},
	{"31 exported names with constants", map[string]string{"runner/more.go": "package runner\n\ntype State int\n\nconst (\n\tA State = iota\n\tB\n)\n\nconst C = State(3)\n" + repeat("func F%d() {}\n", 29)},
		"exported: runner: 31, the ceiling is 30"},

	{"an exception not needed", map[string]string{exceptionsOf: "at-most 1\n2026-01-02 file-lines runner/runner.go 500 old\n"},
		"exception: tests/architecture/exceptions.txt (line 2): file-lines runner/runner.go needs 0, not 500"},
	{"an exception too large", map[string]string{"runner/more.go": tall(61), exceptionsOf: "at-most 1\n2026-01-02 function-lines runner/more.go:tall 70 old\n"},
		"exception: tests/architecture/exceptions.txt (line 2): function-lines runner/more.go:tall needs 61, not 70"},
	{"an exception outgrown", map[string]string{"runner/more.go": tall(62), exceptionsOf: "at-most 1\n2026-01-02 function-lines runner/more.go:tall 61 old\n"},
		"function-lines: runner/more.go:tall: 62, the ceiling is 60"},
	{"an exception too many", map[string]string{"runner/more.go": tall(61), exceptionsOf: "at-most 0\n2026-01-02 function-lines runner/more.go:tall 61 old\n"},
		"exception: tests/architecture/exceptions.txt: has 1 exceptions and says at-most 0"},
}

func TestInterfaceCeiling(t *testing.T) {
	files := plant(t)
	files["runner/more.go"] = "package runner\n\n" + repeat("type I%d interface{ F() }\n", 3)
	if found := source(t, files); len(found) != 0 {
		t.Errorf("three: %v", found)
	}
	files["gateway/more.go"] = "package gateway\n\ntype Fourth interface{ F() }\n"
	if found := source(t, files); len(found) != 4 || !strings.HasPrefix(found[0].String(), "interface: gateway/more.go (line 3): Fourth") {
		t.Errorf("four: %v", found)
	}
}

func TestCeilingsThemselvesAreAllowed(t *testing.T) {
	files := plant(t)
	files["runner/long.go"] = "package runner\n" + repeat("\n", 399)
	files["runner/tall.go"] = tall(60)
	files["runner/wide.go"] = "package runner\n\nfunc wide(a, b int, c, d string) {}\n"
	files["runner/deep.go"] = strings.Replace(deep, "// HERE", "println()", 1)
	files["runner/elses.go"] = "package runner\n\nfunc elses(a int) {\n\tif a == 1 {\n" + repeat("\t} else if a == %d {\n", 9) + "\t}\n}\n"
	files["gateway/more.go"] = "package gateway\n" + repeat("func F%d() {}\n", 30)
	files["helper/cell.c"] = repeat("\n", 400)
	if found := source(t, files); len(found) != 0 {
		t.Error(found)
	}
}

func TestExceptionCoversWhatItSays(t *testing.T) {
	files := plant(t)
	files["runner/more.go"] = tall(61)
	files[exceptionsOf] = "at-most 1\n2026-01-02 function-lines runner/more.go:tall 61 until it is split\n"
	if found := source(t, files); len(found) != 0 {
		t.Error(found)
	}
}
