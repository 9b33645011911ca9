package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxVariables     = 256
	maxVariableBytes = 32 << 10 // of one value; the kernel's own bound is 128 KiB
)

// fixedVariables are the sandbox's own and follow its layout.
var fixedVariables = []string{"HOME", "USER", "LOGNAME", "TMPDIR"}

var variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// variableName is the rule for the name of a variable an operator may set.
var variableName = rule[string, string]{
	"a name of letters, digits and _ that does not begin with a digit, and none of " + strings.Join(fixedVariables, ", "),
	func(written string) (string, *flaw) {
		if slices.Contains(fixedVariables, written) {
			return "", &flaw{
				found: written + ", which follows the sandbox's own user and directories",
				next:  "leave it out",
			}
		}
		if !variablePattern.MatchString(written) {
			return "", &flaw{next: "rename it"}
		}
		return written, nil
	},
}

// variableValue is the rule for its value.
var variableValue = rule[string, string]{
	fmt.Sprintf("a string in quotes, UTF-8 without NUL, of at most %d bytes", maxVariableBytes),
	func(written string) (string, *flaw) {
		if len(written) > maxVariableBytes {
			return "", &flaw{found: fmt.Sprintf("%d bytes", len(written)), next: "shorten it"}
		}
		if strings.Contains(written, "\x00") || !utf8.ValidString(written) {
			return "", &flaw{found: "a value with NUL or not in UTF-8", next: "remove that byte"}
		}
		return written, nil
	},
}

// variables reads a profile's environment table.
func (l *loader) variables(s setting) map[string]string {
	result := map[string]string{}
	if !s.named() {
		return result
	}
	names := s.names()
	if len(names) > maxVariables {
		s.reject(&flaw{
			found:   fmt.Sprintf("%d variables", len(names)),
			allowed: fmt.Sprintf("at most %d", maxVariables),
			next:    "remove some",
		})
		return result
	}
	for _, name := range names {
		if _, f := variableName.apply(name); f != nil {
			s.get(name).rejectName(f)
			continue
		}
		var value string
		if take(s.get(name), variableValue, &value) {
			result[name] = value
		}
	}
	return result
}
