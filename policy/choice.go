package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oneOf is the rule for a word out of a closed list.
func oneOf[V ~string](words ...V) rule[string, V] {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = strconv.Quote(string(word))
	}
	return rule[string, V]{strings.Join(quoted, " or "), func(written string) (V, *flaw) {
		if !slices.Contains(words, V(written)) {
			return "", &flaw{next: "write one of these exactly"}
		}
		return V(written), nil
	}}
}

// untilThen is what to do about a setting of a later version.
const untilThen = "use what is allowed until a version that enforces it"

// notYet is r, except that the given words of a later version are named as such:
// a setting that is not enforced is never accepted.
func notYet[V ~string](r rule[string, V], words ...V) rule[string, V] {
	return rule[string, V]{r.allowed, func(written string) (V, *flaw) {
		if slices.Contains(words, V(written)) {
			return "", &flaw{
				found: strconv.Quote(written) + ", which is not available yet",
				next:  untilThen,
			}
		}
		return r.parse(written)
	}}
}

var yesOrNo = rule[bool, bool]{"true or false", func(written bool) (bool, *flaw) { return written, nil }}

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// plainName is the rule for what an operator names: workspaces, profiles,
// environments, caches.
var plainName = rule[string, string]{
	"a name of 1 to 64 of a-z 0-9 . _ - that begins with a letter or digit",
	func(written string) (string, *flaw) {
		if !namePattern.MatchString(written) {
			return "", &flaw{next: "rename it"}
		}
		return written, nil
	},
}

// shownNames bounds how many names an error lists.
const shownNames = 20

// listed is the rule for a name that the file defines elsewhere.
func listed[V any](defined map[string]V, table string) rule[string, string] {
	names := make([]string, 0, len(defined))
	for name := range defined {
		names = append(names, strconv.Quote(name))
	}
	slices.Sort(names)
	if more := len(names) - shownNames; more > 0 {
		names = append(names[:shownNames], fmt.Sprintf("and %d more", more))
	}
	return rule[string, string]{strings.Join(names, ", "), func(written string) (string, *flaw) {
		if _, ok := defined[written]; !ok {
			return "", &flaw{next: "write one of these, or add [" + joinKey(table, written) + "]"}
		}
		return written, nil
	}}
}
