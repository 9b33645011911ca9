package openat2fs

import (
	"path"
	"strings"
	"unicode/utf8"
)

// Protects says which pattern keeps a file from being added, changed, removed or
// moved. path is relative and clean. A file is protected where a pattern names
// it, below such a place, and above one: a file .git would stand where the
// directory of .git/hooks would. Patterns match component by component in the
// manner of path.Match, but for the case of ASCII letters: .GIT is .git for a
// file system that folds case. One that is malformed matches every name.
func Protects(patterns []string, path string) (pattern string, ok bool) {
	for _, pattern := range patterns {
		if onOneLine(pattern, path) {
			return pattern, true
		}
	}
	return "", false
}

// onOneLine says whether a path is a place of the pattern, below or above one:
// as far as both go, their components match.
func onOneLine(pattern, path string) bool {
	for {
		want, morePattern, deeper := strings.Cut(pattern, "/")
		name, morePath, further := strings.Cut(path, "/")
		if !nameMatches(want, name) {
			return false
		}
		if !deeper || !further {
			return true
		}
		pattern, path = morePattern, morePath
	}
}

// nameMatches is path.Match for one component, which matches as well where it
// would with some letters of the name in the other case.
func nameMatches(pattern, name string) bool {
	if malformed(pattern) {
		return true
	}
	var behind, again string // of the last star: the pattern there, and the name it was last tried on
	starred := false
	for pattern != "" || name != "" {
		unit := firstUnit(pattern)
		if unit == "*" {
			pattern = pattern[1:]
			starred, behind, again = true, pattern, name
			continue
		}
		if width := unitMatches(unit, name); width > 0 {
			pattern, name = pattern[len(unit):], name[width:]
			continue
		}
		if !starred || again == "" {
			return false
		}
		again = again[1:] // by bytes, as path.Match does
		pattern, name = behind, again
	}
	return true
}

// malformed are the patterns that match no name at all, which would protect
// nothing without a word.
func malformed(pattern string) bool {
	if pattern == "" || pattern == "." || pattern == ".." {
		return true
	}
	_, err := path.Match(pattern, "")
	return err != nil
}

// firstUnit is the first element of a well-formed pattern: a star, or what
// matches one character. "" is its end.
func firstUnit(pattern string) string {
	if pattern == "" {
		return ""
	}
	switch pattern[0] {
	case '\\':
		_, width := utf8.DecodeRuneInString(pattern[1:])
		return pattern[:1+width]
	case '[':
		return pattern[:classEnd(pattern)]
	}
	_, width := utf8.DecodeRuneInString(pattern)
	return pattern[:width]
}

// classEnd is behind the bracket that closes the class at the start of a
// well-formed pattern.
func classEnd(pattern string) int {
	end := 1
	for pattern[end] != ']' {
		if pattern[end] == '\\' {
			end++
		}
		end++
	}
	return end + 1
}

// unitMatches is the width of the character that begins the name where the unit
// matches it in either case, else 0.
func unitMatches(unit, name string) int {
	if unit == "" || name == "" {
		return 0
	}
	_, width := utf8.DecodeRuneInString(name)
	for _, character := range [2]string{name[:width], otherCase(name[:width])} {
		if ok, _ := path.Match(unit, character); ok {
			return width
		}
	}
	return 0
}

// otherCase is an ASCII letter in its other case, and anything else as it is.
func otherCase(character string) string {
	const bit = 'a' - 'A'
	if c := character[0] | bit; c < 'a' || c > 'z' {
		return character
	}
	return string(rune(character[0] ^ bit))
}
