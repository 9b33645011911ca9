package line_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"codespace/tests/need"
)

// sources needs a tree of real text files: that of Go, or the headers of C.
func sources(t testing.TB) string {
	t.Helper()
	roots := []string{"/usr/include"}
	if out, err := exec.Command("go", "env", "GOROOT").Output(); err == nil {
		roots = slices.Insert(roots, 0, filepath.Join(strings.TrimSpace(string(out)), "src"))
	}
	for _, root := range append(roots, "/usr/local/go/src") {
		if all, _ := os.ReadDir(root); len(all) > 20 {
			return root
		}
	}
	need.Feature(t, "sources", false, "neither the sources of Go nor /usr/include are here")
	return ""
}

// copied puts up to n text files of a tree into dir, and is their names.
func copied(t testing.TB, from, dir string, n int) (names []string) {
	t.Helper()
	err := filepath.WalkDir(from, func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || len(names) == n {
			return nil
		}
		content, err := os.ReadFile(at)
		if err != nil || len(content) == 0 || len(content) > 200_000 || bytes.IndexByte(content, '\r') >= 0 || content[len(content)-1] != '\n' {
			return nil
		}
		name, err := filepath.Rel(from, at)
		if err != nil || strings.TrimSpace(name) != name {
			return err
		}
		names = append(names, name)
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		return os.WriteFile(filepath.Join(dir, name), content, 0o644)
	})
	must(t, err)
	return names
}

// headed is a patch that puts a line before the first of every file, and its inverse.
func headed(t testing.TB, dir string, names []string) (there, back string) {
	t.Helper()
	const line = "// a line that is in no source\n"
	var to, from strings.Builder
	for _, name := range names {
		first, _, _ := strings.Cut(contents(t, filepath.Join(dir, name)), "\n")
		fmt.Fprintf(&to, "*** Update File: %s\n@@ %s\n+%s", name, first, line)
		fmt.Fprintf(&from, "*** Update File: %s\n@@\n-%s", name, line)
	}
	return around(to.String()), around(from.String())
}

// anchored: a file whose first line is blank or a bare @@'s has no anchor there.
func anchored(t testing.TB, dir string, names []string) []string {
	t.Helper()
	return slices.DeleteFunc(names, func(name string) bool {
		first, _, _ := strings.Cut(contents(t, filepath.Join(dir, name)), "\n")
		// White space at the end of an anchor counts for nothing, so that an equal line
		// without it would be meant.
		return strings.TrimSpace(first) == "" || strings.TrimRight(first, " \t\r") != first
	})
}

// TestPatchOfAThousandFiles changes as many real files as one patch may, tells of each
// once, and takes it back.
func TestPatchOfAThousandFiles(t *testing.T) {
	const n = 1000
	dir := workspace(t)
	names := anchored(t, dir, copied(t, sources(t), dir, 2*n))
	need.Feature(t, "sources", len(names) >= n, "there are too few files")
	names = names[:n]
	there, back := headed(t, dir, names)
	s := start(t, dir)
	before := seen(t, dir, false)
	began := time.Now()
	a := s.patch(there, fields{"operation_key": "there"}).applied(t)
	t.Logf("%d files in %v", n, time.Since(began).Round(time.Millisecond))
	a.wants(t, fields{"changes_total": n, "files_total": n, "truncated": true})
	if told := s.pages(a); !slices.Equal(told, prefixed("update ", names)) {
		t.Errorf("%d changes are told", len(told))
	}
	changedTree := seen(t, dir, false)
	for _, name := range names {
		first, rest, _ := strings.Cut(strings.TrimPrefix(before[name], "-rw-r--r-- "), "\n")
		if want := first + "\n// a line that is in no source\n" + rest; changedTree[name] != "-rw-r--r-- "+want {
			t.Fatalf("%s is %.200q", name, changedTree[name])
		}
	}
	s.patch(there, fields{"operation_key": "there"}).applied(t).wants(t, fields{"replayed": true, "changes_total": n})
	s.patch(back, nil).applied(t).wants(t, fields{"changes_total": n})
	same(t, seen(t, dir, false), before)
}

func prefixed(word string, names []string) (all []string) {
	for _, name := range names {
		all = append(all, word+name)
	}
	return all
}

// pages are all changes of an operation, beginning with an answer of apply_patch; each
// page is as complete as the first.
func (s *session) pages(a answer) (told []string) {
	s.t.Helper()
	id := a.text("operation_id")
	for pages := 1; ; pages++ {
		a.saidTwice(s.t)
		if len(a.said) > 10_000 || len(a.told()) == 0 || pages > 1000 {
			s.t.Fatalf("page %d has %d bytes and %d changes", pages, len(a.said), len(a.told()))
		}
		if got := len(a.fields["files"].([]any)); got != len(a.told()) {
			s.t.Errorf("page %d has %d files for %d changes", pages, got, len(a.told()))
		}
		told = append(told, a.told()...)
		next := a.text("next_cursor")
		if a.wants(s.t, fields{"truncated": next != ""}); next == "" {
			s.t.Logf("%d changes in %d pages", len(told), pages)
			return told
		}
		a = s.call("operation_status", fields{"operation_id": id, "cursor": next})
	}
}

// A tree of CRLF is patched by a patch of LF, and stays one of CRLF.
func TestPatchOfATreeOfCRLF(t *testing.T) {
	const n = 300
	dir := workspace(t)
	names := anchored(t, dir, copied(t, sources(t), dir, n))
	for _, name := range names {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(contents(t, filepath.Join(dir, name)), "\n", "\r\n")), 0o644))
	}
	before := seen(t, dir, false)
	there, back := headed(t, dir, names) // its anchors end in CR, which one of each line may
	there = strings.ReplaceAll(there, "\r\n", "\n")
	s := start(t, dir)
	s.patch(there, nil).applied(t).wants(t, fields{"changes_total": len(names)})
	for _, name := range names {
		got := contents(t, filepath.Join(dir, name))
		if strings.Count(got, "\n") != strings.Count(got, "\r\n") || !strings.Contains(got, "\r\n// a line that is in no source\r\n") {
			t.Fatalf("%s is %.200q", name, got)
		}
	}
	s.patch(back, nil).applied(t)
	same(t, seen(t, dir, false), before)
}

// A tree is built of nothing but one patch, moved elsewhere by another, and deleted
// by a third: what is left are its directories, and nothing else.
func TestPatchMakesMovesAndDeletesATree(t *testing.T) {
	const n = 400
	from, dir := t.TempDir(), workspace(t)
	names := slices.DeleteFunc(copied(t, sources(t), from, n), func(name string) bool { // what no string of JSON can hold
		bad := !utf8.ValidString(contents(t, filepath.Join(from, name)))
		if bad {
			must(t, os.Remove(filepath.Join(from, name)))
		}
		return bad
	})
	var add, move, remove strings.Builder
	for _, name := range names {
		content := contents(t, filepath.Join(from, name))
		fmt.Fprintf(&add, "*** Add File: %s\n+%s\n", name, strings.ReplaceAll(strings.TrimSuffix(content, "\n"), "\n", "\n+"))
		fmt.Fprintf(&move, "*** Update File: %s\n*** Move to: moved/%s\n", name, name)
		fmt.Fprintf(&remove, "*** Delete File: moved/%s\n", name)
	}
	s := start(t, dir)
	s.patch(around(add.String()), nil).applied(t)
	same(t, seen(t, dir, false), seen(t, from, false))
	a := s.patch(around(move.String()), nil).applied(t)
	a.wants(t, fields{"changes_total": len(names), "files_total": 2 * len(names)})
	same(t, seen(t, filepath.Join(dir, "moved"), false), seen(t, from, false))
	s.patch(around(remove.String()), nil).applied(t)
	for name, what := range seen(t, dir, false) {
		if !strings.HasPrefix(what, "d") {
			t.Errorf("%s is left", name)
		}
	}
}
