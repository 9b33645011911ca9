package line_test

import (
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// patched is a patch that is applied. Paths that are not in after are gone; those
// that neither before nor after mention are none.
type patched struct {
	name    string
	before  disk
	patch   string
	after   disk
	changes []string // as answer.told
	modes   map[string]fs.FileMode
}

// one is a patch of the file f alone.
func one(name, before, chunks, after string) patched {
	return patched{name: name, before: disk{"f": before}, patch: update(chunks), after: disk{"f": after}, changes: []string{"update f"}}
}

// bystanders are in every workspace that is patched, and stay.
var bystanders = disk{"by/stander": "stays", "by/.hidden": "stays", "a-stander": ""}

// run checks a patch, which changes nothing, then applies it.
func (c patched) run(t *testing.T, s *session, dir string) {
	for name, content := range bystanders {
		c.before[name], c.after[name] = content, content
	}
	lay(t, dir, c.before, c.modes)
	same(t, seen(t, dir, false), laid(c.before, c.modes))
	untouched(t, dir, func() {
		a := s.patch(c.patch, fields{"check_only": true})
		a.wants(t, fields{"status": "checked", "operation_id": nil, "replayed": false})
		a.saidTwice(t)
		c.says(t, a)
	})
	exact := seen(t, dir, true)
	a := s.patch(c.patch, nil).applied(t)
	c.says(t, a)
	modes := maps.Clone(c.modes)
	for _, row := range a.rows("changes") {
		if from, moved := c.modes[row.text("from")]; moved {
			delete(modes, row.text("from"))
			modes[row.text("path")] = from
		}
	}
	same(t, seen(t, dir, false), laid(c.after, modes))
	now := seen(t, dir, true)
	for name := range bystanders {
		if now[name] != exact[name] {
			t.Errorf("%q was touched: %q, %q", name, exact[name], now[name])
		}
	}
}

// says compares an answer with the change set, and its versions with the files.
func (c patched) says(t *testing.T, a answer) {
	t.Helper()
	if !slices.Equal(a.told(), c.changes) {
		t.Errorf("changes %q, want %q", a.told(), c.changes)
	}
	a.wants(t, fields{"changes_total": len(c.changes), "truncated": false})
	for _, row := range a.rows("changes") {
		old, path := row.text("path"), row.text("path")
		if row.text("from") != "" {
			old = row.text("from")
		}
		want := fields{"before_version": nil, "after_version": nil}
		if content, there := c.before[old]; there {
			want["before_version"] = versionOf([]byte(content))
		}
		if content, there := c.after[path]; there {
			want["after_version"] = versionOf([]byte(content))
		}
		row.wants(t, want)
	}
}

const swap = "@@\n-a\n+b\n"

var longName = strings.Repeat("n", 255)

func patchedFiles() []patched {
	return []patched{
		{"Add", disk{}, around("*** Add File: n\n+x\n+\n+y\n"), disk{"n": "x\n\ny\n"}, []string{"add n"}, nil},
		{"Add to new directories", disk{}, around("*** Add File: p/q/r\n+x\n*** Add File: p/s\n+y\n"), disk{"p/q/r": "x\n", "p/s": "y\n"}, []string{"add p/q/r", "add p/s"}, nil},
		{"Add of an empty file", disk{}, around("*** Add File: n\n"), disk{"n": ""}, []string{"add n"}, nil},
		{"Delete", disk{"d/f": "x", "d/g": "y"}, around("*** Delete File: d/f\n"), disk{"d/g": "y"}, []string{"delete d/f"}, nil},
		{"Delete the last file of a directory", disk{"d/f": "x"}, around("*** Delete File: d/f\n"), disk{"d/": ""}, []string{"delete d/f"}, nil},
		{"Move with edits to a new directory", disk{"f": "a\nz\n"}, around("*** Update File: f\n*** Move to: p/q\n" + swap), disk{"p/q": "b\nz\n"}, []string{"move p/q f"}, map[string]fs.FileMode{"f": 0o750}},
		{"Move alone", disk{"f": "no newline"}, around("*** Update File: f\n*** Move to: g\n"), disk{"g": "no newline"}, []string{"move g f"}, map[string]fs.FileMode{"f": 0o600}},
		{"multi-file", disk{"u": "a\n", "d": "x", "m": "a\n", "k": "k"},
			around("*** Add File: n\n+n\n*** Delete File: d\n*** Update File: u\n" + swap + "*** Update File: m\n*** Move to: v/m\n" + swap),
			disk{"n": "n\n", "u": "b\n", "v/m": "b\n", "k": "k"}, []string{"add n", "delete d", "update u", "move v/m m"}, nil},
		{"padded markers", disk{"f": "a\n", "d": ""}, "  *** Begin Patch \n \t*** Delete File: d \n  *** Add File: c  \n+c\n\t*** Update File: f\t\n" + swap + " *** End Patch  \n\n",
			disk{"f": "b\n", "c": "c\n"}, []string{"delete d", "add c", "update f"}, nil},
		{"heredoc", disk{"f": "a\n"}, "<<EOF\n" + update(swap) + "EOF\n", disk{"f": "b\n"}, []string{"update f"}, nil},
		{"heredoc in single quotes", disk{"f": "a\n"}, "<<'EOF'\n" + update(swap) + "EOF", disk{"f": "b\n"}, []string{"update f"}, nil},
		{"heredoc in double quotes", disk{"f": "a\n"}, "<<\"EOF\"\n" + update(swap) + "EOF\n", disk{"f": "b\n"}, []string{"update f"}, nil},
		{"read-only file", disk{"f": "a\n"}, update(swap), disk{"f": "b\n"}, []string{"update f"}, map[string]fs.FileMode{"f": 0o444}},
		{"execute bits", disk{"f": "a\n"}, update(swap), disk{"f": "b\n"}, []string{"update f"}, map[string]fs.FileMode{"f": 0o755}},
		{"names with spaces", disk{"a b": "a\n"}, around("*** Update File: a b\n*** Move to:  c  d \n" + swap), disk{" c  d": "b\n"}, []string{"move  c  d a b"}, nil},
		{"names with a leading dash", disk{"-rf": "a\n"}, around("*** Update File: -rf\n" + swap), disk{"-rf": "b\n"}, []string{"update -rf"}, nil},
		{"names of 255 bytes", disk{longName: "a\n"}, around("*** Update File: " + longName + "\n" + swap + "*** Add File: d/" + longName + "\n"), disk{longName: "b\n", "d/" + longName: ""}, []string{"update " + longName, "add d/" + longName}, nil},
		{"a name with a newline beside it", disk{"f\ng": "a\n", "f": "a\n"}, update(swap), disk{"f\ng": "a\n", "f": "b\n"}, []string{"update f"}, nil},
		{"names in quotes are not unquoted", disk{}, around("*** Add File: \"n\\n\"\n"), disk{"\"n\\n\"": ""}, []string{"add \"n\\n\""}, nil},
		{"nothing but context", disk{"f": "a\n"}, update("@@\n a\n"), disk{"f": "a\n"}, []string{"update f"}, nil},
	}
}

func patchedContents() []patched {
	return []patched{
		one("one chunk", "a\nb\nc\n", "@@\n a\n-b\n+B\n c\n", "a\nB\nc\n"),
		one("many chunks", "a\nb\nc\nd\ne\nf\n", "@@\n a\n-b\n+B\n@@\n-d\n+D\n@@\n e\n f\n+g\n", "a\nB\nc\nD\ne\nf\ng\n"),
		one("first chunk without @@", "a\nb\n", " a\n-b\n+B\n", "a\nB\n"),
		one("empty context line", "a\n\nb\n", "@@\n a\n\n-b\n+B\n", "a\n\nB\n"),
		one("pure insertion without an anchor", "a\nb\n", "@@\n+c\n+d\n", "a\nb\nc\nd\n"),
		one("pure insertion with an anchor", "a\nb\nc\n", "@@ b\n+x\n", "a\nb\nx\nc\n"),
		one("stacked anchors", "class A\ndef f\n 1\nclass B\ndef f\n 1\n", "@@ class B\n@@ def f\n- 1\n+ 2\n", "class A\ndef f\n 1\nclass B\ndef f\n 2\n"),
		one("End of File", "a\nb\na\n", "@@\n-a\n+x\n*** End of File\n", "a\nb\nx\n"),
		one("deletion only", "a\nb\nc\n", "@@\n a\n-b\n c\n", "a\nc\n"),
		one("deletion of everything", "a\nb\n", "@@\n-a\n-b\n", ""),
		one("CRLF file", "a\r\nb\r\nc\r\n", "@@\n a\n-b\n+B\n+C\n c\n", "a\r\nB\r\nC\r\nc\r\n"),
		one("mixed endings", "a\r\nb\nc\r\n", "@@\n a\n+x\n b\n+y\n c\n", "a\r\nx\r\nb\ny\nc\r\n"),
		one("lone-CR file", "a\rb\rc\r", "@@\n a\n-b\n+B\n+C\n", "a\rB\rC\rc\r"),
		one("patch of CRLF", "a\nb\n", "@@\r\n a\r\n-b\r\n+B\r\n", "a\nB\n"),
		one("byte order mark", "\ufeffa\nb\n", "@@\n-a\n+A\n", "\ufeffA\nb\n"),
		one("unicode punctuation", "it\u2019s \u201cone\u201d\u00a0\u2014 two\nx\n", "@@\n it's \"one\" - two\n-x\n+y\n", "it\u2019s \u201cone\u201d\u00a0\u2014 two\ny\n"),
		one("trailing whitespace drift in the file", "a  \nb\t\n", "@@\n a\n-b\n+B\n", "a  \nB\n"),
		one("trailing whitespace drift in the patch", "a\nb\n", "@@\n a  \n-b \n+B\n", "a\nB\n"),
		one("indentation drift", "  a\n    b\n", "@@\n a\n-b\n+    B\n", "  a\n    B\n"),
		one("not UTF-8", "\xff\xfe \nb\n\x80\x00\n", "@@\n-b\n+B\n", "\xff\xfe \nB\n\x80\x00\n"),
		one("missing final newline", "a\nb\nc", "@@\n-a\n+A\n", "A\nb\nc\n"),
		one("missing final newline of CRLF", "a\r\nb", "@@\n b\n+c\n", "a\r\nb\r\nc\r\n"),
		one("empty file", "", "@@\n+a\n", "a\n"),
		one("file with only newlines", "\n\n\n", "@@\n+a\n", "\n\n\na\n"),
		one("an indented marker is context", " *** End Patch\nb\n", "@@\n  *** End Patch\n-b\n+c\n", " *** End Patch\nc\n"),
		one("100,000 lines", lines(100_000), "@@ line 77777\n-line 77778\n+changed\n@@\n line 99999\n-line 100000\n+last\n",
			strings.NewReplacer("line 77778\n", "changed\n", "line 100000\n", "last\n").Replace(lines(100_000))),
	}
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("line " + shown(float64(i+1)) + "\n")
	}
	return b.String()
}

// TestPatches applies every form of a patch, and looks at the disk.
func TestPatches(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	for _, c := range slices.Concat(patchedFiles(), patchedContents()) {
		t.Run(c.name, func(t *testing.T) { c.run(t, s, dir) })
	}
}

// A new file belongs to whom the workspace does, one that is replaced to whom it did.
// Bits that would lend somebody's identity go.
func TestPatchKeepsModesWithoutSetID(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	write(t, dir, disk{"f": "a\n", "m": "a\n"})
	for _, name := range []string{"f", "m"} {
		must(t, syscall.Chmod(filepath.Join(dir, name), 0o6751))
	}
	s.patch(around("*** Update File: f\n"+swap+"*** Update File: m\n*** Move to: n\n"+swap+"*** Add File: new\n"), nil).applied(t)
	for name, want := range map[string]uint32{"f": 0o751, "n": 0o751, "new": 0o644} {
		if st := lstat(t, filepath.Join(dir, name)); st.Mode&0o7777 != want || st.Uid != lstat(t, dir).Uid {
			t.Errorf("%s has mode %o and uid %d, want %o", name, st.Mode&0o7777, st.Uid, want)
		}
	}
}
