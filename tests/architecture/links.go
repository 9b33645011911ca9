package architecture

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// graph is who imports whom, by import path.
type graph map[string][]string

// checkBinary wants none of a binary's bans within reach of it.
func checkBinary(t *Tree, b *BinaryRule) ([]Violation, error) {
	if t.Packages[b.Subject] == nil {
		return nil, nil // checkPackages names it
	}
	start := t.Module + "/" + b.Subject
	g, err := t.closure(start, b)
	if err != nil {
		return nil, fmt.Errorf("cannot follow the imports of %s: %w", b.Subject, err)
	}
	from := g.reach(start)
	var found []Violation
	for _, ban := range b.Never {
		for _, imported := range slices.Sorted(maps.Keys(from)) {
			if !banned(ban.Subject, imported) {
				continue
			}
			found = append(found, Violation{Check: "link", Place: b.Subject,
				What: "must not link " + imported + ": " + chain(from, imported)})
			break // one way in is enough to be told
		}
	}
	return found, nil
}

// closure is our own part of the graph from the files, whatever their build
// tags, and go list's of everything they reach outside.
func (t *Tree) closure(start string, b *BinaryRule) (graph, error) {
	g, outside, todo := graph{}, map[string]bool{}, []string{start}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		dir, ours := t.ours(at)
		if !ours {
			outside[at] = at != "C" && at != "unsafe"
			continue
		}
		if _, seen := g[at]; seen {
			continue
		}
		if t.Packages[dir] == nil {
			return nil, fmt.Errorf("no package in %s", dir)
		}
		g[at] = t.imports(dir)
		todo = append(todo, g[at]...)
	}
	maps.DeleteFunc(outside, func(_ string, ask bool) bool { return !ask })
	return g, t.list(g, b, slices.Sorted(maps.Keys(outside)))
}

// imports are those of the files that are not tests.
func (t *Tree) imports(dir string) []string {
	imports := []string{}
	for _, f := range t.Packages[dir].Sources {
		for _, imported := range f.Imports {
			if !f.Test {
				imports = append(imports, imported.Path)
			}
		}
	}
	return imports
}

// list adds to g what go list knows about packages that are not ours.
func (t *Tree) list(g graph, b *BinaryRule, packages []string) error {
	if len(packages) == 0 {
		return nil
	}
	args := append([]string{"list", "-deps", "-json=ImportPath,Imports", "-tags", strings.Join(b.Tags, ",")}, packages...)
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = t.Root, &strings.Builder{}
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b.Cgo {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	}
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%w: %s", err, cmd.Stderr)
	}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		g[p.ImportPath] = p.Imports
	}
}

// reach maps every import path within reach to the one it was reached from.
func (g graph) reach(start string) map[string]string {
	from, todo := map[string]string{start: ""}, []string{start}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		for _, next := range g[at] {
			if _, seen := from[next]; !seen {
				from[next] = at
				todo = append(todo, next)
			}
		}
	}
	return from
}

func chain(from map[string]string, imported string) string {
	way := []string{imported}
	for from[imported] != "" {
		imported = from[imported]
		way = append(way, imported)
	}
	slices.Reverse(way)
	return strings.Join(way, " -> ")
}

// banned: "net" is that package alone, "a/b/..." also all below, "*x*" any path
// with x in it.
func banned(pattern, imported string) bool {
	if word := strings.Trim(pattern, "*"); word != pattern {
		return strings.Contains(imported, word)
	}
	if dir, ok := strings.CutSuffix(pattern, "/..."); ok {
		return below(dir, imported)
	}
	return imported == pattern
}
