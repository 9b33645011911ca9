package architecture

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// checkExecution keeps programs out of the stations that only decide: the
// gateway, the policy, the ledger and the description of a sandbox start nothing.
func checkExecution(t *Tree, _ *Rules) []Violation {
	starts := []string{"os.StartProcess", "syscall.Exec", "syscall.ForkExec", "syscall.StartProcess", "golang.org/x/sys/unix.Exec"}
	var found []Violation
	for _, f := range t.product() {
		if !slices.ContainsFunc([]string{"gateway", "policy", "ledger", "sandbox"}, func(dir string) bool { return below(dir, f.Path) }) {
			continue
		}
		for _, imported := range f.Imports {
			if imported.Path == "os/exec" {
				found = append(found, Violation{Check: "execution", Place: f.Path, Line: imported.Line, What: "imports os/exec where nothing is ever started"})
			}
		}
		for _, c := range t.calls(f) {
			if slices.Contains(starts, c.name) {
				found = append(found, Violation{Check: "execution", Place: f.Path, Line: c.line, What: "calls " + c.name + " where nothing is ever started"})
			}
		}
	}
	return found
}

// checkInit wants no init() but where libcontainer needs one.
func checkInit(t *Tree, _ *Rules) []Violation {
	var found []Violation
	for _, f := range t.product() {
		if dir := path.Dir(f.Path); dir == "cmd/codespace-helper" || dir == "helper/container" {
			continue
		}
		for _, decl := range f.AST.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				found = append(found, Violation{Check: "init", Place: f.Path, Line: t.line(fn.Pos()), What: "init() outside the container adapter"})
			}
		}
	}
	return found
}

// interfaceCeiling is for the whole program.
const interfaceCeiling = 3

func checkInterfaces(t *Tree, _ *Rules) []Violation {
	var found []Violation
	for _, f := range t.product() {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if _, ok := spec.Type.(*ast.InterfaceType); ok {
				found = append(found, Violation{Check: "interface", Place: f.Path, Line: t.line(spec.Pos()), What: spec.Name.Name + " is one interface too many: the program may have " + strconv.Itoa(interfaceCeiling)})
			}
			return true
		})
	}
	if len(found) <= interfaceCeiling {
		return nil
	}
	return found
}

// checkSleep wants an event wherever the program waits.
func checkSleep(t *Tree, _ *Rules) []Violation {
	var found []Violation
	for _, f := range t.product() {
		for _, c := range t.calls(f) {
			if c.name == "time.Sleep" {
				found = append(found, Violation{Check: "sleep", Place: f.Path, Line: c.line, What: "waits by time.Sleep, not for an event"})
			}
		}
	}
	return found
}

// checkSkip wants every skip to go through tests/need, which CI can forbid.
func checkSkip(t *Tree, _ *Rules) []Violation {
	var found []Violation
	for _, f := range t.Files {
		if f.AST == nil || below(needPackage, f.Path) || !f.Test && !below("tests", f.Path) {
			continue
		}
		for _, c := range t.calls(f) {
			if name := c.name[strings.LastIndexByte(c.name, '.')+1:]; name == "Skip" || name == "Skipf" || name == "SkipNow" {
				found = append(found, Violation{Check: "skip", Place: f.Path, Line: c.line, What: "skips by itself: use " + needPackage})
			}
		}
	}
	return found
}

// checkPaths keeps path-based file access out of the package whose promise is
// that there is none.
func checkPaths(t *Tree, _ *Rules) []Violation {
	byPath := strings.Fields("os.Open os.OpenFile os.OpenRoot os.OpenInRoot os.Create os.ReadFile os.WriteFile os.ReadDir os.Stat os.Lstat " +
		"os.Mkdir os.MkdirAll os.Remove os.RemoveAll os.Rename os.Readlink os.Symlink os.Link os.Chmod os.Chown os.Truncate os.DirFS " +
		"path/filepath.Walk path/filepath.WalkDir path/filepath.Glob path/filepath.EvalSymlinks")
	var found []Violation
	for _, f := range t.product() {
		if !below("openat2fs", f.Path) {
			continue
		}
		for _, c := range t.calls(f) {
			if slices.Contains(byPath, c.name) {
				found = append(found, Violation{Check: "path", Place: f.Path, Line: c.line, What: c.name + " goes by a path, not by a descriptor"})
			}
		}
	}
	return found
}

// call is one call through a selector; name is the import path of a package and
// the function, or what stands in the source for anything else.
type call struct {
	name string
	line int
	text string
}

func (t *Tree) calls(f *File) []call {
	imports := f.names()
	var calls []call
	ast.Inspect(f.AST, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		selector, ok := c.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name := t.text(f, selector.X)
		if imported, ok := imports[name]; ok {
			name = imported
		}
		calls = append(calls, call{name + "." + selector.Sel.Name, t.line(c.Pos()), t.text(f, c)})
		return true
	})
	return calls
}

// names maps the name a package goes by in this file to its import path.
func (f *File) names() map[string]string {
	names := map[string]string{}
	for i, spec := range f.AST.Imports {
		name := path.Base(f.Imports[i].Path)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = f.Imports[i].Path
	}
	return names
}
