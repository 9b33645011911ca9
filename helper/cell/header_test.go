package cell_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"codespace/sandbox/message"
)

// inC are the numbers that cell.h gives names to, with the names as one word.
func inC(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("cell.h")
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^\t((?:KIND|TAG)_\w+) = (\d+),`).FindAllStringSubmatch(string(text), -1) {
		numbers[strings.ReplaceAll(m[1], "_", "")], _ = strconv.Atoi(m[2])
	}
	for _, m := range regexp.MustCompile(`(?m)^#define ([A-Z]\w+) (0x[0-9a-f]+|\d+)u?( \* 1024)?`).FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseInt(strings.Trim(m[2], "()"), 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		numbers[m[1]] = int(n)
	}
	if m := regexp.MustCompile(`INBOX_BYTES \((\d+) \* 1024\)`).FindStringSubmatch(string(text)); m != nil {
		n, _ := strconv.Atoi(m[1])
		numbers["INBOX_BYTES"] = n << 10
	}
	return numbers
}

// inGo are the constants of a Go file that are plain numbers, or one shifted.
func inGo(t *testing.T, name string) map[string]int {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]int{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if n, ok := number(spec.Values[0]); ok {
			numbers[spec.Names[0].Name] = n
		}
		return true
	})
	return numbers
}

func number(e ast.Expr) (int, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		n, err := strconv.ParseInt(e.Value, 0, 64)
		return int(n), err == nil
	case *ast.BinaryExpr:
		x, first := number(e.X)
		y, second := number(e.Y)
		return x << y, first && second && e.Op == token.SHL
	}
	return 0, false
}

// Both sides of the boundary are written by hand; here they are one.
func TestHeaderAndGoAgree(t *testing.T) {
	c, g := inC(t), inGo(t, "../../sandbox/message/message.go")
	named := map[string]int{}
	for name, n := range g {
		if strings.HasPrefix(name, "Kind") || strings.HasPrefix(name, "Tag") {
			named[strings.ToUpper(name)] = n
		}
	}
	count := 0
	for name, n := range c {
		if !strings.HasPrefix(name, "KIND") && !strings.HasPrefix(name, "TAG") {
			continue
		}
		count++
		if got, ok := named[name]; !ok || got != n {
			t.Errorf("%s is %d in C and %d in Go (there: %v)", name, n, got, ok)
		}
		delete(named, name)
	}
	for name := range named {
		t.Errorf("%s is in Go alone", name)
	}
	if count < 32 {
		t.Errorf("not shown: only %d names were found in cell.h", count)
	}
	if c["CELL_MAGIC"] != g["messageMagic"] || c["CELL_MAGIC"] != 0x4c4c4543 {
		t.Errorf("magic %#x in C, %#x in Go", c["CELL_MAGIC"], g["messageMagic"])
	}
	if c["CELL_VERSION"] != g["messageVersion"] || c["CELL_VERSION"] == 0 {
		t.Errorf("version %d in C, %d in Go", c["CELL_VERSION"], g["messageVersion"])
	}
	if int(message.KindEmpty) != c["KINDEMPTY"] || int(message.TagTree) != c["TAGTREE"] {
		t.Error("not shown: the file that was read is not the package that is linked")
	}
}

// What one side sends, the other has room for.
func TestRoomForMessages(t *testing.T) {
	c, g := inC(t), inGo(t, "../../sandbox/message/channel.go")
	if c["MAX_FDS"] == 0 || c["MAX_FDS"] != g["maxFiles"] {
		t.Errorf("%d descriptors in C, %d in Go", c["MAX_FDS"], g["maxFiles"])
	}
	if c["INBOX_BYTES"] < g["MaxBytes"] || g["MaxBytes"] == 0 {
		t.Errorf("an inbox of %d bytes for datagrams of %d", c["INBOX_BYTES"], g["MaxBytes"])
	}
	if inline := inGo(t, "../../sandbox/cell.go")["inlineBytes"]; inline == 0 || inline > c["INBOX_BYTES"] {
		t.Errorf("an inbox of %d bytes for launches of %d", c["INBOX_BYTES"], inline)
	}
}
