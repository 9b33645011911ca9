package architecture

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// rulesFile is read from the tree that is checked.
const rulesFile = "tests/architecture/rules.txt"

// Rules is rules.txt; its grammar stands at the top of that file.
type Rules struct {
	Top      []*Rule
	Modules  []*Rule
	Packages []*PackageRule
	Binaries []*BinaryRule
}

// Rule is one permission, or one ban of a binary.
type Rule struct {
	Subject string // a directory, an import path, a pattern
	Version string // of a module: "any" or the beginning of what is allowed
	Line    int    // in rules.txt
	Test    bool   // only for test files
	Later   bool   // stands for something not built yet
	used    bool
}

// PackageRule is what one package may import.
type PackageRule struct {
	Rule
	Ours, Outside []*Rule
}

// BinaryRule is what one binary must never link.
type BinaryRule struct {
	Rule
	Tags  []string
	Cgo   bool
	Never []*Rule
}

func (r *Rules) pkg(dir string) *PackageRule {
	for _, p := range r.Packages {
		if p.Subject == dir {
			return p
		}
	}
	return nil
}

func readRules(root string) (*Rules, error) {
	body, err := os.ReadFile(filepath.Join(root, rulesFile))
	if err != nil {
		return nil, err
	}
	rules, number := &Rules{}, 0
	for line := range strings.Lines(string(body)) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if err := rules.add(words, number); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", rulesFile, number, err)
		}
	}
	return rules, nil
}

// add takes one line: marks, a word, its subject, for two words one thing more,
// and a reason.
func (r *Rules) add(words []string, number int) error {
	rule := Rule{Line: number}
	for len(words) > 0 && (words[0] == "later" || words[0] == "test") {
		rule.Later = rule.Later || words[0] == "later"
		rule.Test = rule.Test || words[0] == "test"
		words = words[1:]
	}
	extra := len(words) > 0 && (words[0] == "module" || words[0] == "binary")
	if len(words) < 3 || extra && len(words) < 4 {
		return fmt.Errorf("cannot read %q: want a word, its subject and a reason", strings.Join(words, " "))
	}
	rule.Subject = words[1]
	if words[0] == "binary" {
		r.Binaries = append(r.Binaries, newBinary(rule, words[2]))
		return nil
	}
	if words[0] == "module" {
		rule.Version = words[2]
	}
	return r.place(words[0], rule)
}

func (r *Rules) place(word string, rule Rule) error {
	switch word {
	case "top":
		r.Top = append(r.Top, &rule)
	case "module":
		r.Modules = append(r.Modules, &rule)
	case "package":
		r.Packages = append(r.Packages, &PackageRule{Rule: rule})
	case "ours", "outside":
		return r.permit(word, rule)
	case "never":
		if len(r.Binaries) == 0 {
			return fmt.Errorf("cannot place never %s: no binary above it", rule.Subject)
		}
		last := r.Binaries[len(r.Binaries)-1]
		last.Never = append(last.Never, &rule)
	default:
		return fmt.Errorf("cannot understand the word %q", word)
	}
	return nil
}

func (r *Rules) permit(word string, rule Rule) error {
	if len(r.Packages) == 0 {
		return fmt.Errorf("cannot place %s %s: no package above it", word, rule.Subject)
	}
	last := r.Packages[len(r.Packages)-1]
	if word == "ours" {
		last.Ours = append(last.Ours, &rule)
	} else {
		last.Outside = append(last.Outside, &rule)
	}
	return nil
}

// newBinary reads "cgo,seccomp": cgo is the compiler's switch, the rest are tags.
func newBinary(rule Rule, build string) *BinaryRule {
	b := &BinaryRule{Rule: rule}
	for tag := range strings.SplitSeq(build, ",") {
		switch tag {
		case "cgo":
			b.Cgo = true
		case "plain":
		default:
			b.Tags = append(b.Tags, tag)
		}
	}
	return b
}
