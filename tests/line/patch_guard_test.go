package line_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestExpectedVersions: a patch is applied to what its author has seen, or not at all.
func TestExpectedVersions(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	version := func(content string) string { return versionOf([]byte(content)) }
	for name, c := range map[string]struct {
		expected     map[string]string
		path, actual string // of the conflict, "" for none
	}{
		"all as expected":                 {map[string]string{"f": version("a\n"), "n": "absent", "by/stander": version("stays"), "no/where": "absent"}, "", ""},
		"stale":                           {map[string]string{"f": version("older\n")}, "f", version("a\n")},
		"absent and there":                {map[string]string{"f": "absent"}, "f", version("a\n")},
		"there and absent":                {map[string]string{"n": version("a\n")}, "n", "absent"},
		"not in the patch and stale":      {map[string]string{"f": version("a\n"), "by/stander": version("else")}, "by/stander", version("stays")},
		"not in the patch, below a file":  {map[string]string{"by/stander/x": "absent"}, "by/stander/x", "PATH_NOT_DIRECTORY"},
		"a directory":                     {map[string]string{"by": "absent"}, "by", "directory"},
		"a link":                          {map[string]string{"link": version("a\n")}, "link", "link"},
		"a FIFO":                          {map[string]string{"fifo": "absent"}, "fifo", "fifo"},
		"one of several, the first named": {map[string]string{"f": "absent", "by/stander": "absent"}, "by/stander", version("stays")},
	} {
		t.Run(name, func(t *testing.T) {
			lay(t, dir, disk{"f": "a\n", "by/stander": "stays"}, nil)
			must(t, os.Symlink("f", filepath.Join(dir, "link")))
			must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
			text := around("*** Update File: f\n" + swap + "*** Add File: n\n")
			for _, check := range []bool{true, false} {
				if c.path == "" {
					continue
				}
				untouched(t, dir, func() {
					a := s.patch(text, fields{"expected_versions": c.expected, "check_only": check}).refused(t, "VERSION_CONFLICT")
					a.wants(t, fields{"operation_id": nil})
					a.below("details").wants(t, fields{"path": c.path, "expected": c.expected[c.path], "actual": c.actual})
					if !strings.Contains(a.said, c.path) || !strings.Contains(a.said, c.actual) {
						t.Errorf("the text does not tell: %s", a.said)
					}
				})
			}
			if c.path == "" {
				s.patch(text, fields{"expected_versions": c.expected}).applied(t)
			}
		})
	}
	for _, none := range []string{"", strings.ToUpper(version("a\n")), "sha256:", "anything"} {
		s.patch(update(swap), fields{"expected_versions": map[string]string{"f": none}}).refused(t, "INVALID_ARGUMENT").wants(t, fields{"operation_id": nil})
	}
	for _, path := range []string{"../outside", "/etc/passwd", ".", ""} {
		s.patch(update(swap), fields{"expected_versions": map[string]string{path: "absent"}}).refused(t, "PATH_ESCAPE")
	}
}

// What read answered with is what apply_patch wants to hear, and what it then
// answers with is what holds.
func TestVersionsLeadFromPatchToPatch(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	write(t, dir, disk{"f": "0\n"})
	version := s.file("read", fields{"path": "f"}).text("version")
	for i := range 20 {
		now, next := shown(float64(i)), shown(float64(i+1))
		text := update("@@\n-" + now + "\n+" + next + "\n")
		a := s.patch(text, fields{"expected_versions": map[string]string{"f": version}}).applied(t)
		s.patch(text, fields{"expected_versions": map[string]string{"f": version}}).refused(t, "VERSION_CONFLICT")
		version = a.rows("changes")[0].text("after_version")
	}
	if got := s.file("read", fields{"path": "f"}); got.text("version") != version || got.text("content") != "20\n" {
		t.Errorf("%v, want the version %s", got.fields, version)
	}
}

// TestCheckOnly: nothing at all is written for a patch that is only checked, neither
// to the workspace nor to the ledger, and nobody is waited for.
func TestCheckOnly(t *testing.T) {
	dir, state := workspace(t), t.TempDir()
	write(t, dir, disk{"f": "a\n"})
	s := open(t, func(cmd *exec.Cmd) { cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state) }, "-w", dir)
	id := s.holding()
	check := fields{"check_only": true, "operation_key": "k", "expected_versions": map[string]string{"f": versionOf([]byte("a\n"))}}
	untouched(t, dir, func() {
		for range 3 {
			a := s.patch(around("*** Update File: f\n"+swap+"*** Add File: d/n\n"), check)
			a.wants(t, fields{"status": "checked", "operation_id": nil, "replayed": false, "changes_total": 2, "files_total": 2})
			a.saidTwice(t)
		}
		s.patch(around("*** Delete File: nothing\n"), check).refused(t, "FILE_NOT_FOUND")
		s.patch(update(swap), nil).refused(t, "WORKSPACE_BUSY") // the control: it is held
	})
	s.call("operation_status", fields{"workspace_id": s.workspace, "operation_key": "k"}).refused(t, "OPERATION_NOT_FOUND")
	s.terminate(id)
	s.exited(id)
	a := s.patch(update(swap), fields{"operation_key": "k"}).applied(t)
	a.wants(t, fields{"replayed": false})
	s.patch(update("@@\n-b\n+c\n"), check).refused(t, "VERSION_CONFLICT") // planned, not replayed
}

// A ledger is not even made for a patch that is only checked.
func TestCheckOnlyMakesNoLedger(t *testing.T) {
	dir, state := workspace(t), t.TempDir()
	s := open(t, func(cmd *exec.Cmd) { cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state) }, "-w", dir)
	made := func() []string {
		all, err := filepath.Glob(filepath.Join(state, "*", "*", "ledger.db"))
		must(t, err)
		return all
	}
	s.patch(around("*** Add File: n\n"), fields{"check_only": true}).wants(t, fields{"status": "checked"})
	if got := made(); len(got) > 0 {
		t.Errorf("a check has made %q", got)
	}
	s.patch(around("*** Add File: n\n"), nil).applied(t)
	if got := made(); len(got) != 1 {
		t.Errorf("control: the patch has made %q", got)
	}
}
