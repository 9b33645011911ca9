package openat2fs

import "strings"

// maxAlternatives is how many patterns the braces of a glob may stand for.
const maxAlternatives = 64

// expand writes {a,b} out: the alternatives may hold slashes, and components are
// matched one by one. false: too many, or a slash in a class or behind a
// backslash, which no name can hold.
func expand(glob string) ([]string, bool) {
	done, todo := []string{}, []string{glob}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		open, ok := special(next, 0, "{")
		if !ok {
			return nil, false
		}
		if open == len(next) {
			done = append(done, next)
			continue
		}
		more, ok := choose(next, open)
		if !ok || len(done)+len(todo)+len(more) > maxAlternatives {
			return nil, false
		}
		todo = append(more, todo...)
	}
	return done, true
}

// choose writes out the braces that open at open.
func choose(glob string, open int) ([]string, bool) {
	var choices []string
	depth, from := 1, open+1
	for next := from; ; {
		at, ok := special(glob, next, "{,}")
		if !ok || at == len(glob) {
			return nil, false
		}
		next = at + 1
		switch glob[at] {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 || depth == 1 && glob[at] == ',' {
			choices = append(choices, glob[from:at])
			from = at + 1
		}
		if depth == 0 {
			return around(glob[:open], choices, glob[from:]), len(choices) <= maxAlternatives
		}
	}
}

func around(before string, choices []string, behind string) []string {
	all := make([]string, 0, len(choices))
	for _, choice := range choices {
		all = append(all, before+choice+behind)
	}
	return all
}

// special is where the next of the characters stands that is neither escaped nor
// in a class, or the length of the glob.
func special(glob string, from int, characters string) (int, bool) {
	class := false
	for i := from; i < len(glob); i++ {
		switch c := glob[i]; {
		case c == '\\':
			i++
			if i < len(glob) && glob[i] == '/' {
				return i, false
			}
		case class && c == '/':
			return i, false
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case strings.IndexByte(characters, c) >= 0:
			return i, true
		}
	}
	return len(glob), true
}
