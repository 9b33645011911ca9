package architecture

import (
	"fmt"
	"slices"
)

// checkTop wants nothing at the top that is not on the list, and no links or
// sockets anywhere, which a reader of files would miss.
func checkTop(t *Tree, r *Rules) []Violation {
	var found []Violation
	for _, name := range t.Top {
		i := slices.IndexFunc(r.Top, func(rule *Rule) bool { return matches([]string{rule.Subject}, name) })
		if i < 0 {
			found = append(found, Violation{Check: "top", Place: name, What: "is not a place of this program"})
			continue
		}
		r.Top[i].used = true
	}
	for _, rule := range r.Top {
		found = append(found, unused("top "+rule.Subject, rule)...)
	}
	for _, name := range t.Odd {
		found = append(found, Violation{Check: "top", Place: name, What: "is neither a file nor a directory"})
	}
	return found
}

// checkPackages wants every package in the rules and with a comment of its own.
func checkPackages(t *Tree, r *Rules) []Violation {
	var found []Violation
	for dir, p := range t.Packages {
		if r.pkg(dir) == nil {
			found = append(found, Violation{Check: "package", Place: dir, What: "has no entry in " + rulesFile})
		}
		if !slices.ContainsFunc(p.Sources, hasComment) {
			found = append(found, Violation{Check: "package", Place: dir, What: "has no package comment"})
		}
	}
	for _, b := range r.Binaries {
		if t.Packages[b.Subject] == nil && !b.Later {
			found = append(found, Violation{Check: "package", Place: b.Subject, What: fmt.Sprintf("is a binary in line %d of the rules and does not exist", b.Line)})
		}
	}
	return found
}

func hasComment(f *File) bool { return f.AST.Doc.Text() != "" }
