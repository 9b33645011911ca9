package architecture

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"path"
)

// The ceilings. Files of every kind of code have the first; the others are for
// the program itself.
const (
	fileLines     = 400
	functionLines = 60
	nesting       = 3
	parameters    = 4
	exportedNames = 30
	filesInC      = 4
)

func checkFiles(t *Tree, _ *Rules) []Violation {
	var found []Violation
	inCount := 0
	for _, f := range t.Files {
		if f.AST == nil && !inC(f.Path) {
			continue
		}
		found = append(found, ceiling("file-lines", f.Path, bytes.Count(f.Body, []byte("\n")), fileLines)...)
		if productC(f.Path) && path.Ext(f.Path) == ".c" {
			inCount++
		}
	}
	return append(found, ceiling("c-files", "helper", inCount, filesInC)...)
}

func checkFunctions(t *Tree, _ *Rules) []Violation {
	var found []Violation
	for _, f := range t.product() {
		for _, decl := range f.AST.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			place := f.Path + ":" + fn.Name.Name
			found = append(found, ceiling("function-lines", place, t.line(fn.End())-t.line(fn.Pos())+1, functionLines)...)
			found = append(found, ceiling("parameters", place, fn.Type.Params.NumFields(), parameters)...)
			found = append(found, ceiling("nesting", place, deepest(fn.Body, 0), nesting)...)
		}
	}
	return found
}

func ceiling(check, place string, size, allowed int) []Violation {
	if size <= allowed {
		return nil
	}
	return []Violation{{Check: check, Place: place, Size: size, What: fmt.Sprintf("%d, the ceiling is %d", size, allowed)}}
}

// deepest counts statements that hold statements. An else-if is as deep as its
// if, a case as its switch, and a closure as the place it stands in.
func deepest(n ast.Node, level int) int {
	most := level
	ast.Inspect(n, func(inner ast.Node) bool {
		if inner == n {
			return true
		}
		switch s := inner.(type) {
		case *ast.IfStmt:
			most = max(most, deepestIf(s, level))
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			most = max(most, deepest(inner, level+1))
		default:
			return true
		}
		return false
	})
	return most
}

func deepestIf(s *ast.IfStmt, level int) int {
	most := max(deepest(s.Body, level+1), deepest(s.Cond, level))
	if s.Init != nil {
		most = max(most, deepest(s.Init, level))
	}
	switch other := s.Else.(type) {
	case *ast.IfStmt:
		most = max(most, deepestIf(other, level))
	case *ast.BlockStmt:
		most = max(most, deepest(other, level+1))
	}
	return most
}

// checkExported counts a package's exported names. Constants of one type count
// as one, methods and fields do not.
func checkExported(t *Tree, _ *Rules) []Violation {
	names := map[string]map[string]bool{}
	for _, f := range t.product() {
		dir := path.Dir(f.Path)
		if names[dir] == nil {
			names[dir] = map[string]bool{}
		}
		for _, decl := range f.AST.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					names[dir][d.Name.Name] = true
				}
			case *ast.GenDecl:
				t.exported(f, d, names[dir])
			}
		}
	}
	var found []Violation
	for dir, exported := range names {
		found = append(found, ceiling("exported", dir, len(exported), exportedNames)...)
	}
	return found
}

func (t *Tree) exported(f *File, d *ast.GenDecl, names map[string]bool) {
	typed := "" // of the constants, carried on where a line gives none
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				names[s.Name.Name] = true
			}
		case *ast.ValueSpec:
			typed = t.constantType(f, s, typed)
			t.values(s, d.Tok == token.CONST && typed != "", typed, names)
		}
	}
}

// constantType is the type a line of constants is declared or converted to.
func (t *Tree) constantType(f *File, s *ast.ValueSpec, before string) string {
	if s.Type != nil {
		return t.text(f, s.Type)
	}
	if len(s.Values) == 0 {
		return before
	}
	if c, ok := s.Values[0].(*ast.CallExpr); ok {
		return t.text(f, c.Fun)
	}
	return ""
}

func (t *Tree) values(s *ast.ValueSpec, together bool, typed string, names map[string]bool) {
	for _, name := range s.Names {
		switch {
		case !name.IsExported():
		case together:
			names["constants of "+typed] = true
		default:
			names[name.Name] = true
		}
	}
}
