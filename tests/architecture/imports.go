package architecture

import (
	"fmt"
	"slices"
)

// needPackage is open to every test file: it is how one is skipped.
const needPackage = "tests/need"

// checkImports wants every import of ours and of other modules on the list, and
// marks what it used.
func checkImports(t *Tree, r *Rules) []Violation {
	var found []Violation
	for _, p := range t.Packages {
		rule := r.pkg(p.Dir)
		if rule == nil {
			continue // checkPackages names it
		}
		for _, f := range p.Sources {
			found = append(found, t.checkFile(f, rule)...)
		}
	}
	return found
}

func (t *Tree) checkFile(f *File, rule *PackageRule) []Violation {
	var found []Violation
	for _, imported := range f.Imports {
		if !t.permits(rule, f, imported.Path) {
			found = append(found, Violation{Check: "import", Place: f.Path, Line: imported.Line,
				What: fmt.Sprintf("%s may not import %s", rule.Subject, imported.Path)})
		}
	}
	return found
}

// permits: an outside permission covers what is below it, one of ours does not.
func (t *Tree) permits(rule *PackageRule, f *File, imported string) bool {
	if dir, ours := t.ours(imported); ours {
		free := f.Test && (dir == rule.Subject || dir == needPackage)
		return use(rule.Ours, f.Test, func(allowed string) bool { return allowed == dir }) || free
	}
	return use(rule.Outside, f.Test, func(allowed string) bool { return below(allowed, imported) }) || !t.outside(imported)
}

// use finds the permissions that cover an import and marks them. What a package
// may import its test files may too, but that is no use of the permission.
func use(permissions []*Rule, test bool, covers func(string) bool) bool {
	allowed := false
	for _, p := range permissions {
		if !covers(p.Subject) || p.Test && !test {
			continue
		}
		p.used = p.used || p.Test == test
		allowed = true
	}
	return allowed
}

// checkUnused wants a user for every permission, and a "later" only where there
// is none. It runs after checkImports.
func checkUnused(t *Tree, r *Rules) []Violation {
	var found []Violation
	for _, p := range r.Packages {
		p.used = t.Packages[p.Subject] != nil
		found = append(found, unused("package "+p.Subject, &p.Rule)...)
		for _, rule := range slices.Concat(p.Ours, p.Outside) {
			found = append(found, unused(p.Subject+" -> "+rule.Subject, rule)...)
		}
	}
	return found
}

func unused(name string, rule *Rule) []Violation {
	what := name + ": a permission nobody uses"
	if rule.used == !rule.Later {
		return nil
	}
	if rule.used {
		what = name + ": in use, so no longer later"
	}
	return []Violation{{Check: "unused", Place: rulesFile, Line: rule.Line, What: what}}
}
