package line_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// spoiled is a patch that is refused before anything is written.
type spoiled struct {
	name   string
	before disk
	patch  string
	code   string
	detail fields // of the error
}

// run tries a patch both ways, and wants nothing to be written or recorded.
func (c spoiled) run(t *testing.T, s *session, dir string) {
	lay(t, dir, c.before, nil)
	write(t, dir, bystanders)
	for _, check := range []bool{true, false} {
		untouched(t, dir, func() {
			a := s.patch(c.patch, fields{"check_only": check}).refused(t, c.code)
			a.wants(t, fields{"operation_id": nil})
			a.below("details").wants(t, c.detail)
			if strings.Contains(a.said, filepath.Dir(dir)) {
				t.Errorf("a path of the host: %s", a.said)
			}
		})
	}
}

func spoiledPatches() []spoiled {
	const a = "a\n"
	moved := "*** Update File: f\n*** Move to: "
	return []spoiled{
		{"ambiguous match", disk{"f": "a\nb\na\n"}, update(swap), "PATCH_AMBIGUOUS", fields{"path": "f", "chunk": 1, "matches": "[1 3]", "matches_total": 2}},
		{"missing context", disk{"f": "a\nb\nd\n"}, update("@@\n a\n-b\n-c\n+x\n"), "INVALID_PATCH", fields{"path": "f", "chunk": 1, "sought": `["a" "b" "c"]`, "nearest_line": 1, "differs_line": 3}},
		{"missing context of a second file", disk{"f": a, "g": a}, around("*** Update File: f\n" + swap + "*** Update File: g\n@@\n-x\n+y\n"), "INVALID_PATCH", fields{"path": "g"}},
		{"missing anchor", disk{"f": a}, update("@@ nowhere\n-a\n+b\n"), "INVALID_PATCH", fields{"path": "f"}},
		{"chunks out of order", disk{"f": "a\nb\n"}, update("@@\n-b\n+B\n@@\n-a\n+A\n"), "INVALID_PATCH", fields{"chunk": 2}},
		{"missing file to update", disk{}, update(swap), "FILE_NOT_FOUND", fields{"path": "f"}},
		{"missing file to delete", disk{}, around("*** Delete File: d/f\n"), "FILE_NOT_FOUND", fields{"path": "d/f"}},
		{"missing file to move", disk{}, around(moved + "g\n"), "FILE_NOT_FOUND", fields{"path": "f"}},
		{"existing Add target", disk{"f": a}, around("*** Add File: f\n+x\n"), "ADD_FILE_EXISTS", fields{"path": "f"}},
		{"existing Add target that is a directory", disk{"f/g": a}, around("*** Add File: f\n"), "ADD_FILE_EXISTS", fields{"path": "f"}},
		{"existing Move target", disk{"f": a, "g": ""}, around(moved + "g\n" + swap), "MOVE_DESTINATION_EXISTS", fields{"path": "g"}},
		{"a directory as file to update", disk{"f/g": a}, update(swap), "SPECIAL_FILE_REJECTED", fields{"path": "f"}},
		{"a directory as file to delete", disk{"f/": ""}, around("*** Delete File: f\n"), "SPECIAL_FILE_REJECTED", fields{"path": "f"}},
		{"a file as directory", disk{"f": a}, around("*** Add File: f/g\n"), "PATH_NOT_DIRECTORY", fields{"path": "f"}},
		{"same path twice", disk{"f": a}, around("*** Update File: f\n" + swap + "*** Delete File: f\n"), "INVALID_PATCH", fields{"path": "f"}},
		{"same path twice, spelled otherwise", disk{"f": a}, around("*** Update File: f\n" + swap + "*** Delete File: ./f\n"), "INVALID_PATCH", nil},
		{"a destination that is a source", disk{"f": a, "g": a}, around(moved + "g\n*** Delete File: g\n"), "INVALID_PATCH", nil},
		{"parent and child paths", disk{}, around("*** Add File: p\n*** Add File: p/q\n"), "INVALID_PATCH", fields{"path": "p/q"}},
		{"a path with a newline", disk{}, around("*** Add File: n\nm\n"), "INVALID_PATCH", fields{"line": 3}},
		{"a name of 256 bytes", disk{}, around("*** Add File: n" + longName + "\n"), "INVALID_PATCH", fields{"line": 2}},
		{"a path above", disk{}, around("*** Add File: ../outside\n"), "PATH_ESCAPE", nil},
		{"a path through above", disk{}, around("*** Add File: p/../../outside\n"), "PATH_ESCAPE", nil},
		{"an absolute path", disk{}, around("*** Add File: /tmp/outside\n"), "PATH_ESCAPE", nil},
		{"an empty path", disk{}, around("*** Add File: \n"), "PATH_ESCAPE", nil},
		{"a destination above", disk{"f": a}, around(moved + "../outside\n"), "PATH_ESCAPE", nil},
		{"an environment", disk{"f": a}, around("*** Environment ID: other\n*** Update File: f\n" + swap), "INVALID_PATCH", fields{"line": 2}},
		{"no hunk", disk{}, around(""), "INVALID_PATCH", nil},
		{"an update of nothing", disk{"f": a}, update(""), "INVALID_PATCH", nil},
		{"text behind the end", disk{"f": a}, update(swap) + "more\n", "INVALID_PATCH", fields{"line": 7}},
		{"a text behind @@ at once", disk{"f": a}, update("@@a\n-a\n+b\n"), "INVALID_PATCH", nil},
		{"a body line without a sign", disk{}, around("*** Add File: n\nx\n"), "INVALID_PATCH", fields{"line": 3}},
		{"no end", disk{"f": a}, "*** Begin Patch\n*** Update File: f\n" + swap, "INVALID_PATCH", nil},
	}
}

// TestPatchesThatAreRefused tries what cannot be meant.
func TestPatchesThatAreRefused(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	for _, c := range spoiledPatches() {
		t.Run(c.name, func(t *testing.T) { c.run(t, s, dir) })
	}
	s.patch("", nil).refused(t, "INVALID_PATCH")
	s.patch(around("*** Add File: a\x00b\n"), nil).refused(t, "INVALID_ARGUMENT")
	s.patch(around("*** Add File: n\n"), fields{"workspace_id": "nowhere"}).refused(t, "WORKSPACE_NOT_FOUND")
	if all, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(all) != 1 {
		t.Errorf("beside the workspace: %v, %v", all, err)
	}
}

// A directory that its owner cannot write is the disk's refusal: it comes after the
// patch is recorded, and everything is as it was.
func TestPatchInADirectoryThatIsReadOnly(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	before := disk{"d/f": "a\n", "g": "a\n"}
	modes := map[string]fs.FileMode{"d": 0o555}
	for _, hunk := range []string{"*** Update File: d/f\n" + swap, "*** Delete File: d/f\n", "*** Add File: d/n\n", "*** Add File: d/e/n\n", "*** Update File: d/f\n*** Move to: p/f\n"} {
		lay(t, dir, before, modes)
		a := s.patch(around("*** Update File: g\n"+swap+hunk), nil).refused(t, "FILE_OPERATION_FAILED")
		a.below("details").wants(t, fields{"status": "failed_rolled_back"})
		same(t, seen(t, dir, false), laid(before, modes))
		op := s.call("operation_status", fields{"operation_id": a.text("operation_id")})
		op.wants(t, fields{"status": "failed_rolled_back", "kind": "patch"})
		op.below("error").wants(t, fields{"code": "FILE_OPERATION_FAILED"})
	}
	empty(t, dir)
}

// What the bounds of a patch refuse, they refuse before anything is written.
func TestPatchesOverTheLimits(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	numbered := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	write(t, dir, disk{"f": lines(100_000)})
	big := strings.Repeat("y", 64<<20)
	must(t, os.WriteFile(filepath.Join(dir, "one-line"), []byte(big), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "two-lines"), []byte("x\n"+big), 0o644))
	for name, c := range map[string]struct{ patch, code string }{
		"10^5 files":                          {around(numbered(100_000, "*** Add File: d/n%d\n")), "INVALID_PATCH"},
		"1,001 files":                         {around(numbered(1001, "*** Add File: d/n%d\n")), "INVALID_PATCH"},
		"501 moves":                           {around(numbered(501, "*** Update File: d/n%d\n*** Move to: d/m%[1]d\n")), "INVALID_PATCH"},
		"a patch over 8 MiB":                  {around("*** Add File: n\n+" + strings.Repeat("x", 8<<20) + "\n"), "INVALID_PATCH"},
		"129 directories":                     {around("*** Add File: " + strings.Repeat("d/", 129) + "n\n"), "INVALID_PATCH"},
		"a file of over 64 MiB":               {around("*** Update File: two-lines\n@@\n-x\n+z\n"), "FILE_TOO_LARGE"},
		"a file that would be":                {around("*** Update File: one-line\n+z\n"), "FILE_TOO_LARGE"},
		"10^5 chunks of which the last fails": {update(numbered(99_999, "@@\n-line %d\n+L\n") + "@@\n-nothing\n+n\n"), "INVALID_PATCH"},
	} {
		t.Run(name, func(t *testing.T) {
			before := identities(t, dir)
			s.patch(c.patch, nil).refused(t, c.code).wants(t, fields{"operation_id": nil})
			if after := identities(t, dir); !slices.Equal(after, before) {
				t.Errorf("before %v, now %v", before, after)
			}
		})
	}
}

// identities are the names of a directory, and what tells their files from copies.
func identities(t testing.TB, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		st := lstat(t, filepath.Join(dir, e.Name()))
		all = append(all, fmt.Sprint(e.Name(), st.Ino, st.Size, st.Ctim))
	}
	return all
}

// 10^5 chunks of one file, and a line of 64 MiB, are patched.
func TestPatchesAtTheLimits(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	const n = 100_000
	line := strings.Repeat("y", 64<<20-3)
	write(t, dir, disk{"f": lines(n), "g": "x\n" + line})
	var chunks, want strings.Builder
	for i := range n {
		fmt.Fprintf(&chunks, "@@\n-line %d\n+L%d\n", i+1, i)
		fmt.Fprintf(&want, "L%d\n", i)
	}
	a := s.patch(update(chunks.String()), nil).applied(t)
	a.rows("changes")[0].wants(t, fields{"after_version": versionOf([]byte(want.String()))})
	if contents(t, filepath.Join(dir, "f")) != want.String() {
		t.Error("f is not as it should be")
	}
	s.patch(around("*** Update File: g\n@@\n-x\n+z\n"), nil).applied(t)
	if contents(t, filepath.Join(dir, "g")) != "z\n"+line+"\n" {
		t.Error("g is not as it should be")
	}
	deep := strings.Repeat("d/", 127) + "n"
	s.patch(around("*** Add File: "+deep+"\n"), nil).applied(t)
	if absent(filepath.Join(dir, deep)) {
		t.Error("the deepest file is not there")
	}
}
