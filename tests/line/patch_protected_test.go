package line_test

import (
	"strings"
	"testing"
)

// protectedPaths are paths that no patch may touch, some spelled otherwise.
var protectedPaths = []string{
	".git/hooks/x", ".git/config", ".envrc", ".vscode/settings.json", // each tried there and not there
	".git/hooks", ".GIT/hooks/x", ".git/Config", "./.git/config", ".git//config", ".git/modules/sub/hooks/x", ".mcp.json", ".claude/settings.json",
}

// TestPatchesOfProtectedPaths tries everything a patch can do to a path that tools
// outside obey.
func TestPatchesOfProtectedPaths(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	for _, path := range protectedPaths {
		hunks := map[string]bool{ // and whether the file is there
			"*** Add File: " + path + "\n+b\n":                             false,
			"*** Update File: plain\n*** Move to: " + path + "\n" + swap:   false,
			"*** Update File: plain\n*** Move to: " + path + "\n":          true,
			"*** Add File: " + path + "\n+c\n":                             true,
			"*** Update File: " + path + "\n" + swap:                       true,
			"*** Delete File: " + path + "\n":                              true,
			"*** Update File: " + path + "\n*** Move to: stolen\n":         true,
			"*** Update File: " + path + "\n*** Move to: stolen\n" + swap:  true,
			"*** Update File: " + path + "\n@@\n-nothing\n+b\n":            true,
			"*** Update File: " + path + "\n*** Move to: " + path + ".1\n": false,
		}
		for hunk, there := range hunks {
			before := disk{"plain": "a\n", "other": "a\n"}
			if there {
				before[path] = "a\n"
			}
			lay(t, dir, before, nil)
			text := around("*** Update File: other\n" + swap + hunk)
			for _, check := range []bool{true, false} {
				untouched(t, dir, func() {
					a := s.patch(text, fields{"check_only": check}).refused(t, "PATH_PROTECTED")
					a.wants(t, fields{"operation_id": nil, "retryable": false})
					if a.below("details").text("pattern") == "" || !strings.Contains(a.said, a.below("details").text("path")) {
						t.Errorf("%q: %v", hunk, a.fields)
					}
				})
			}
			if t.Failed() {
				t.Fatalf("%q, there: %v", hunk, there)
			}
		}
	}
}

// What only looks like a protected path is anybody's, and what tools obey that is not
// protected is handed on by name.
func TestPatchesBesideProtectedPaths(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	a := s.patch(around("*** Add File: .gitty/hooks.txt\n*** Add File: git/hooks/x\n*** Add File: .envrc.example\n*** Add File: sub/.vscode.md\n*** Add File: .github/workflows/ci.yml\n"), nil).applied(t)
	handoff := a.rows("handoff")
	if len(handoff) != 1 || handoff[0].text("path") != ".github/workflows/ci.yml" || handoff[0].text("reason") != "ci_workflow" {
		t.Errorf("handed on: %v", a.fields["handoff"])
	}
	s.file("version", fields{"paths": []string{".git/config"}}).rows("versions")[0].wants(t, fields{"version": "absent"}) // looking is free
}

// A directory that a command has just made does not lead around the list.
func TestProtectedPathsAfterACommand(t *testing.T) {
	dir := workspace(t)
	write(t, dir, disk{".git/config": "a\n", "plain": "a\n"})
	s := start(t, dir)
	s.says(shell("ln -s .git innocent; mkdir -p d; ln -s ../.git/hooks d/hooks; ln .git/config hard 2>/dev/null; true")...)
	before := seen(t, dir+"/.git", true)
	for hunk, code := range map[string]string{
		"*** Update File: innocent/config\n" + swap:             "SYMLINK_REJECTED",
		"*** Add File: innocent/hooks/x\n":                      "SYMLINK_REJECTED",
		"*** Update File: plain\n*** Move to: innocent/envrc\n": "SYMLINK_REJECTED",
		"*** Add File: d/hooks/x\n":                             "SYMLINK_REJECTED",
	} {
		s.patch(around(hunk), nil).refused(t, code)
	}
	same(t, seen(t, dir+"/.git", true), before)
	if !absent(dir + "/hard") { // a second name of the file: the patch parts the two
		s.patch(around("*** Update File: hard\n"+swap), nil).applied(t)
	}
	if got := contents(t, dir+"/.git/config"); got != "a\n" {
		t.Errorf("the config is %q", got)
	}
}
