package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// defaultProtected are the paths of a workspace that a tool outside the sandbox
// obeys: hooks and settings of git, of agents and of editors.
var defaultProtected = []string{
	".git/hooks",
	".git/config",
	".git/config.worktree",
	".git/info/attributes",
	".git/modules/*/hooks",
	".git/modules/*/config",
	".git/worktrees/*/config.worktree",
	".git/worktrees/*/gitdir",
	".claude",
	".codex",
	".agents",
	".cursor",
	".gemini",
	".mcp.json",
	".vscode",
	".idea",
	".devcontainer",
	".envrc",
}

const (
	maxProtected      = 256
	maxProtectedBytes = 512
)

// protectedPattern is the rule for one of them: a clean relative path whose
// components are patterns in the manner of path.Match.
var protectedPattern = rule[string, string]{
	fmt.Sprintf("a path relative to the workspace of at most %d bytes, without . or .. or ** or braces; * ? [ ] match within one name", maxProtectedBytes),
	func(written string) (string, *flaw) {
		clean := written != "" && written != "." && path.Clean(written) == written
		inside := !path.IsAbs(written) && written != ".." && !strings.HasPrefix(written, "../")
		if !clean || !inside || len(written) > maxProtectedBytes {
			return "", &flaw{next: `write it as seen from the workspace, for example ".git/hooks"`}
		}
		if strings.ContainsAny(written, "{}\x00") || strings.Contains(written, "**") {
			return "", &flaw{next: "write one pattern for each path"}
		}
		for component := range strings.SplitSeq(written, "/") { // as they are matched: no class holds a slash
			if _, err := path.Match(component, ""); err != nil {
				return "", &flaw{next: "close the bracket, or escape it with a backslash"}
			}
		}
		return written, nil
	},
}

// protected reads `protected`, which replaces the default list, and
// `protected_extra`, which adds to whichever holds.
func (l *loader) protected(profile setting) []string {
	result := defaultProtected
	if s := profile.get("protected"); s.value != nil {
		result = l.patterns(s)
		if array, ok := s.value.([]any); ok && len(array) == 0 {
			s.reject(&flaw{
				found:   "an empty list",
				allowed: "at least one pattern",
				next:    "remove the key to keep the default list",
			})
		}
	}
	return distinct(append(slices.Clone(result), l.patterns(profile.get("protected_extra"))...))
}

func (l *loader) patterns(s setting) []string {
	var result []string
	for _, item := range s.items(maxProtected, "patterns") {
		var pattern string
		if take(item, protectedPattern, &pattern) {
			result = append(result, pattern)
		}
	}
	return result
}

// distinct is list without repetitions, in its order.
func distinct(list []string) []string {
	var result []string
	for _, item := range list {
		if !slices.Contains(result, item) {
			result = append(result, item)
		}
	}
	return result
}
