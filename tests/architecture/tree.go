package architecture

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Tree is every file below a root, read once.
type Tree struct {
	Root     string
	Module   string              // the module path of go.mod
	Top      []string            // what stands at the top and holds a file
	Odd      []string            // what is neither a file nor a directory
	Packages map[string]*Package // by directory
	Files    []*File             // text files of every kind
	fset     *token.FileSet
}

// Package is one directory with Go files in it.
type Package struct {
	Dir     string
	Sources []*File
}

// File is one file; AST and Imports are set for Go files outside testdata.
type File struct {
	Path    string // relative to the root, with slashes
	Body    []byte
	AST     *ast.File
	Imports []Import
	Test    bool
}

// Import is one import of one file.
type Import struct {
	Path string
	Line int
}

func readTree(root string) (*Tree, error) {
	module, err := moduleOf(root)
	if err != nil {
		return nil, err
	}
	t := &Tree{Root: root, Module: module, Packages: map[string]*Package{}, fset: token.NewFileSet()}
	ignored, err := ignoredNames(root)
	if err != nil {
		return nil, err
	}
	return t, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		rel, _ := filepath.Rel(root, name) // name is below root
		if !strings.Contains(rel, "/") {
			if matches(ignored, rel) {
				return skip(entry)
			}
		}
		if entry.IsDir() {
			return nil
		}
		if top, _, _ := strings.Cut(rel, "/"); !slices.Contains(t.Top, top) {
			t.Top = append(t.Top, top)
		}
		if !entry.Type().IsRegular() {
			t.Odd = append(t.Odd, rel)
			return nil
		}
		return t.add(rel)
	})
}

func (t *Tree) add(rel string) error {
	body, err := os.ReadFile(filepath.Join(t.Root, rel))
	if err != nil || bytes.IndexByte(body, 0) >= 0 { // no text: nothing here can judge it
		return err
	}
	file := &File{Path: rel, Body: body, Test: strings.HasSuffix(rel, "_test.go")}
	t.Files = append(t.Files, file)
	if path.Ext(rel) != ".go" || testdata(rel) {
		return nil
	}
	file.AST, err = parser.ParseFile(t.fset, rel, body, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("cannot parse: %w", err)
	}
	for _, spec := range file.AST.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		file.Imports = append(file.Imports, Import{imported, t.line(spec.Pos())})
	}
	dir := path.Dir(rel)
	if t.Packages[dir] == nil {
		t.Packages[dir] = &Package{Dir: dir}
	}
	t.Packages[dir].Sources = append(t.Packages[dir].Sources, file)
	return nil
}

func (t *Tree) line(pos token.Pos) int { return t.fset.Position(pos).Line }

// text is the source of a node as it was written.
func (t *Tree) text(file *File, node ast.Node) string {
	return string(file.Body[t.fset.Position(node.Pos()).Offset:t.fset.Position(node.End()).Offset])
}

// ours tells whether an import path is one of this module, and its directory.
func (t *Tree) ours(imported string) (dir string, ok bool) {
	return strings.CutPrefix(imported, t.Module+"/")
}

// outside tells whether an import path comes from another module or from C.
func (t *Tree) outside(imported string) bool {
	if _, ok := t.ours(imported); ok {
		return false
	}
	first, _, _ := strings.Cut(imported, "/")
	return imported == "C" || strings.Contains(first, ".")
}

// product are the Go files that are part of the program: no test file, nothing
// below tests.
func (t *Tree) product() []*File {
	var files []*File
	for _, f := range t.Files {
		if f.AST != nil && !f.Test && !below("tests", f.Path) {
			files = append(files, f)
		}
	}
	return files
}

func testdata(name string) bool { return strings.Contains("/"+name, "/testdata/") }

func below(dir, name string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

func moduleOf(root string) (string, error) {
	body, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(body)) {
		if module, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return module, nil
		}
	}
	return "", fmt.Errorf("cannot find a module line in %s", filepath.Join(root, "go.mod"))
}

// ignoredNames are .git and the patterns of .gitignore, looked at for the top only.
func ignoredNames(root string) ([]string, error) {
	body, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	names := []string{".git"}
	for line := range strings.Lines(string(body)) {
		if line = strings.Trim(strings.TrimSpace(line), "/"); line != "" && line[0] != '#' {
			names = append(names, line)
		}
	}
	return names, nil
}

func matches(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

func skip(entry fs.DirEntry) error {
	if entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}
