package openat2fs_test

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"codespace/openat2fs"
)

// guarded is a list as a workspace has it.
var guarded = []string{
	".git/hooks", ".git/config", ".git/info/attributes", ".git/modules/*/hooks", ".git/worktrees/*/gitdir",
	".claude", ".mcp.json", ".envrc", "ci/*.yml", "deploy/stage-?/key", "v[0-9]", `a\*b`, "x[^a-c]y", "naïve",
}

func TestProtects(t *testing.T) {
	cases := []struct{ path, pattern string }{
		{".git/hooks", ".git/hooks"},
		{".git/hooks/pre-commit", ".git/hooks"},
		{".git/hooks/a/b/c", ".git/hooks"},
		{".git/config", ".git/config"},
		{".git/config/x", ".git/config"},
		{".envrc", ".envrc"},
		{".mcp.json", ".mcp.json"},
		{".claude/agents/x.md", ".claude"},

		// A file that stands where a directory above a protected path would.
		{".git", ".git/hooks"},
		{".git/info", ".git/info/attributes"},
		{".git/modules", ".git/modules/*/hooks"},
		{".git/modules/x", ".git/modules/*/hooks"},
		{".git/worktrees/x", ".git/worktrees/*/gitdir"},
		{"ci", "ci/*.yml"},
		{"deploy", "deploy/stage-?/key"},
		{"deploy/stage-1", "deploy/stage-?/key"},

		// Not those beside it.
		{".gitignore", ""},
		{".gitmodules", ""},
		{".git2", ""},
		{".gi", ""},
		{".git/hooks2", ""},
		{".git/hook", ""},
		{".git/hooks.d/x", ""},
		{".git/info/exclude", ""},
		{".git/HEAD", ""},
		{".git/modules/x/HEAD", ""},
		{".git/modules/a/b/hooks", ""}, // a star is one name
		{".claude.json", ""},
		{".mcp.json5", ""},
		{"envrc", ""},

		// Patterns begin at the root: what lies below is another repository's.
		{"sub/.git/hooks/x", ""},
		{"sub/.git", ""},
		{"sub/.envrc", ""},
		{"a/b/.claude/x", ""},

		// Letters of ASCII in either case.
		{".GIT/Hooks/pre-commit", ".git/hooks"},
		{".Git", ".git/hooks"},
		{".EnvRC", ".envrc"},
		{".git/Modules/X/HOOKS/y", ".git/modules/*/hooks"},
		{"CI/Build.YML", "ci/*.yml"},
		{"V1", "v[0-9]"},
		{"naïve", "naïve"},
		{"NAïVE", "naïve"},
		{"NAÏVE", ""},
		{".ENVRC\xff", ""},
		{".env{c", ""}, // one bit beside
		{"\x0eenvrc", ""},

		{"ci/build.yml", "ci/*.yml"},
		{"ci/.yml", "ci/*.yml"},
		{"ci/build.yml/x", "ci/*.yml"},
		{"ci/build.yaml", ""},
		{"ci/a/b.yml", ""},
		{"deploy/stage-1/key", "deploy/stage-?/key"},
		{"deploy/stage-é/key/x", "deploy/stage-?/key"},
		{"deploy/stage-\xff/key", "deploy/stage-?/key"},
		{"deploy/stage-12/key", ""},
		{"deploy/stage-/key", ""},
		{"deploy/stage-1/cert", ""},
		{"v7/x", "v[0-9]"},
		{"v", ""},
		{"va", ""},
		{"a*b", `a\*b`},
		{"A*B/c", `a\*b`},
		{"axb", ""},
		{"xdy", "x[^a-c]y"},
		{"x\xffy", "x[^a-c]y"},
		{"XAY", "x[^a-c]y"}, // A is not in the class
		{"xy", ""},

		{"ci/\xff\xfe.yml", "ci/*.yml"},
		{".git/hooks/\xff", ".git/hooks"},
		{".git\xff/hooks", ""},
		{"\xff", ""},
		{strings.Repeat("a/", 2000) + "a", ""},
		{"ci/" + strings.Repeat("x", 251) + ".yml", "ci/*.yml"},
	}
	for _, c := range cases {
		pattern, ok := openat2fs.Protects(guarded, c.path)
		if pattern != c.pattern || ok != (c.pattern != "") {
			t.Errorf("%.60q: by %q, %v, want %q", c.path, pattern, ok, c.pattern)
		}
	}
	if pattern, ok := openat2fs.Protects(nil, ".git/hooks"); ok {
		t.Errorf("no patterns, and yet %q", pattern)
	}
}

// TestProtectsMatchesClasses: a class matches a letter where it holds either
// case of it, whichever way it is written.
func TestProtectsMatchesClasses(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"[A-C]x", "bX", true}, {"[a-c]x", "BX", true}, {"[A-C]x", "dx", false},
		{"[A-z]", "_", true}, {"[^A-Z]", "a", true}, {"[^A-Z]", "A", true}, {"[^A-Za-z]", "A", false},
		{`[\]]`, "]", true}, {`[\\-\]]`, `\`, true}, {`\[a`, "[A", true}, {`\[a`, "a", false}, {"[é]", "é", true},
		{"*", "x", true}, {"*a*b*", "xxAyyBzz", true}, {"*a*b*", "xxbyya", false}, {"a*", "a", true}, {"*.yml", "a.yml.yml", true},
		{"**x", "yyx", true}, {"*[^é]", "é", true}, // as path.Match
	} {
		if _, ok := openat2fs.Protects([]string{c.pattern}, c.path); ok != c.want {
			t.Errorf("%s and %s: %v", c.pattern, c.path, ok)
		}
	}
}

// TestProtectsByMalformedPatterns: what cannot be matched protects everything in
// its place, since nobody would notice that it protects nothing.
func TestProtectsByMalformedPatterns(t *testing.T) {
	for _, pattern := range []string{"", ".", "..", "[", "[a", "a[", "[]a]", "[^]", "[a-]", `\`, `a\`, "*[", "[a/b]", "/x", "../x"} {
		if _, ok := openat2fs.Protects([]string{"src/" + pattern}, "src/x"); !ok {
			t.Errorf("src/%s protects nothing", pattern)
		}
		if _, ok := openat2fs.Protects([]string{"src/" + pattern}, "lib/x"); ok {
			t.Errorf("src/%s protects outside its place", pattern)
		}
	}
}

// FuzzProtects: it never panics; a pattern without special characters protects
// its place and everything below and above it; and what path.Match matches,
// component by component, is protected.
func FuzzProtects(f *testing.F) {
	for _, pattern := range guarded {
		f.Add(pattern, ".git/hooks/x")
		f.Add(pattern, "ci/a.yml")
	}
	f.Add("[", "x")
	f.Add(`[\`, "x")
	f.Add("*[^é]*", "é/\xff")
	f.Add("\xff*\xa9", "\xff\xc3\xa9")
	f.Fuzz(func(t *testing.T, pattern, file string) {
		pattern, file = pattern[:min(len(pattern), 512)], file[:min(len(file), 4095)]
		_, ok := openat2fs.Protects([]string{pattern}, file)
		if matched := eachMatches(pattern, file); matched && !ok {
			t.Errorf("%q does not protect %q", pattern, file)
		}
		if strings.ContainsAny(file, `*?[\`) {
			return
		}
		above := file[:max(strings.LastIndexByte(file, '/'), 0)]
		shouted := strings.ToUpper(file[:ascii(file)]) + file[ascii(file):]
		for _, guarded := range []string{file, file + "/" + pattern, above, shouted} {
			if _, ok := openat2fs.Protects([]string{file}, guarded); !ok && guarded != "" {
				t.Errorf("%q does not protect %q", file, guarded)
			}
		}
	})
}

// eachMatches is the plain half of the rule.
func eachMatches(pattern, file string) bool {
	wanted, names := strings.Split(pattern, "/"), strings.Split(file, "/")
	if !utf8.ValidString(pattern) {
		return false
	}
	for i := range min(len(wanted), len(names)) {
		if ok, _ := filepath.Match(wanted[i], names[i]); !ok {
			return false
		}
	}
	return true
}

// ascii is how many bytes of text come before the first that is none of ASCII.
func ascii(text string) int {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return i
		}
	}
	return len(text)
}
