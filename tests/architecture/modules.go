package architecture

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

type requirement struct {
	path, version string
	direct        bool
	line          int
}

// checkModules wants every direct requirement listed, every pin kept, every
// listed module required, and nothing replaced.
func checkModules(t *Tree, r *Rules) []Violation {
	required, found := requirements(t.Root)
	listed := map[string]*Rule{}
	for _, m := range r.Modules {
		listed[m.Subject] = m
	}
	for _, q := range required {
		m := listed[q.path]
		if m != nil {
			m.used = m.used || q.direct // an indirect one is somebody else's use
		}
		switch {
		case m == nil && q.direct:
			found = append(found, Violation{Check: "module", Place: "go.mod", Line: q.line, What: q.path + " is not on the list of outside modules"})
		case m != nil && m.Version != "any" && !strings.HasPrefix(q.version, m.Version):
			found = append(found, Violation{Check: "module", Place: "go.mod", Line: q.line, What: fmt.Sprintf("%s %s: pinned to %s*", q.path, q.version, m.Version)})
		}
	}
	for _, m := range r.Modules {
		found = append(found, unused("module "+m.Subject, m)...)
	}
	return append(found, unlisted(t, r)...)
}

// unlisted wants a module for every outside permission, so that the list of
// modules is the whole of what can come in.
func unlisted(t *Tree, r *Rules) []Violation {
	var found []Violation
	for _, p := range r.Packages {
		for _, rule := range p.Outside {
			if rule.Subject != "C" && !covered(rule.Subject, r.Modules) {
				found = append(found, Violation{Check: "module", Place: rulesFile, Line: rule.Line, What: rule.Subject + " is of no listed module"})
			}
		}
	}
	return found
}

func covered(imported string, modules []*Rule) bool {
	for _, m := range modules {
		if below(m.Subject, imported) {
			return true
		}
	}
	return false
}

// requirements reads go.mod; other directives than these are violations, since
// a replace would go around every pin.
func requirements(root string) (required []requirement, found []Violation) {
	body, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, []Violation{{Check: "module", Place: "go.mod", What: err.Error()}}
	}
	number, block := 0, false
	for line := range strings.Lines(string(body)) {
		number++
		words := strings.Fields(line)
		switch {
		case len(words) == 0, words[0] == "module", words[0] == "go", words[0] == "toolchain", strings.HasPrefix(words[0], "//"):
		case block && words[0] == ")":
			block = false
		case block:
			required = append(required, newRequirement(words, number))
		case words[0] == "require" && words[1] == "(":
			block = true
		case words[0] == "require":
			required = append(required, newRequirement(words[1:], number))
		default:
			found = append(found, Violation{Check: "module", Place: "go.mod", Line: number, What: words[0] + " is not used here"})
		}
	}
	return required, found
}

func newRequirement(words []string, line int) requirement {
	q := requirement{path: words[0], direct: words[len(words)-1] != "indirect", line: line}
	if len(words) > 1 {
		q.version = words[1]
	}
	return q
}
