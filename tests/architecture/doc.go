// Package architecture holds the program to its own plan, by reading it.
//
// Every check is a function over one tree of files and returns what it found;
// nothing is asked of a build or of a cache, except what outside packages
// import. The plan is data beside this file: rules.txt (who may import what and
// why), models.txt (names that would mean a model is called) and exceptions.txt
// (dated debts that may only shrink). The tests run the checks on this tree and
// want silence, then plant one violation of each kind in a small tree and want
// exactly that one named.
//
// It promises that an import, a permission, a descriptor or a size outside the
// plan fails with its file and line. It does not judge what code does.
package architecture

import (
	"cmp"
	"fmt"
	"slices"
)

// Violation is one place that differs from the plan.
type Violation struct {
	Check string // "import", "cloexec", ...: a word of exceptions.txt where an exception is possible
	Place string // a file, "file:function" or a directory, relative to the root
	Line  int    // 0 where a line means nothing
	What  string
	Size  int // what an exception's number is compared with
}

func (v Violation) String() string {
	if v.Line == 0 {
		return fmt.Sprintf("%s: %s: %s", v.Check, v.Place, v.What)
	}
	return fmt.Sprintf("%s: %s (line %d): %s", v.Check, v.Place, v.Line, v.What)
}

// Source runs every check that needs the files below root and nothing else.
func Source(root string) ([]Violation, error) {
	tree, rules, err := read(root)
	if err != nil {
		return nil, err
	}
	exceptions, err := readExceptions(root)
	if err != nil {
		return nil, err
	}
	var found []Violation
	for _, check := range []func(*Tree, *Rules) []Violation{
		checkTop, checkPackages, checkImports, checkUnused, checkModules,
		checkExecution, checkInit, checkInterfaces, checkSleep, checkSkip, checkPaths,
		checkDescriptors, checkDescriptorsInC, checkFiles, checkFunctions, checkExported,
	} {
		found = append(found, check(tree, rules)...)
	}
	models, err := checkModels(tree)
	if err != nil {
		return nil, err
	}
	return sorted(exceptions.apply(append(found, models...))), nil
}

// Links runs the checks of what each binary links, however indirectly. Our own
// part of the graph is read from the files, the rest is asked of go list, which
// sees only packages fixed by go.sum.
func Links(root string) ([]Violation, error) {
	tree, rules, err := read(root)
	if err != nil {
		return nil, err
	}
	var found []Violation
	for _, binary := range rules.Binaries {
		more, err := checkBinary(tree, binary)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return sorted(found), nil
}

func read(root string) (*Tree, *Rules, error) {
	tree, err := readTree(root)
	if err != nil {
		return nil, nil, err
	}
	rules, err := readRules(root)
	return tree, rules, err
}

func sorted(found []Violation) []Violation {
	slices.SortFunc(found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Check, b.Check), cmp.Compare(a.Place, b.Place), cmp.Compare(a.Line, b.Line))
	})
	return found
}
