package openat2fs_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"codespace/openat2fs"
)

func TestParsePath(t *testing.T) {
	long := strings.Repeat("x", 255)
	for _, ok := range []string{"a", "a/b", "...", "..a", "a..", ".a", "~a", "a~", "a/~", "a b", "a\nb", "-a", "\xff\xfe", `a\b`, long,
		strings.Repeat("a/", 255) + "a", strings.TrimSuffix(strings.Repeat(long+"/", 16), "x/")} {
		p, err := openat2fs.ParsePath(ok)
		if err != nil || p.String() != ok || p.IsRoot() {
			t.Errorf("%.40q: %v, %v", ok, p, err)
		}
	}
	for unsafe, code := range map[string]openat2fs.Code{
		"": openat2fs.PathEscape, ".": openat2fs.PathEscape, "..": openat2fs.PathEscape, "/": openat2fs.PathEscape, "/a": openat2fs.PathEscape,
		"a/..": openat2fs.PathEscape, "../a": openat2fs.PathEscape, "a/../../b": openat2fs.PathEscape, "a//b": openat2fs.PathEscape, "//": openat2fs.PathEscape,
		"a/": openat2fs.PathEscape, "./a": openat2fs.PathEscape, "a/.": openat2fs.PathEscape, "a/./b": openat2fs.PathEscape, "~": openat2fs.PathEscape,
		"~/a": openat2fs.PathEscape, "file:a": openat2fs.PathEscape, "file:///etc/passwd": openat2fs.PathEscape,
		"a\x00": openat2fs.InvalidArgument, "\x00": openat2fs.InvalidArgument, "../\x00": openat2fs.InvalidArgument,
		long + "x": openat2fs.InvalidArgument, strings.Repeat("a/", 256) + "a": openat2fs.InvalidArgument,
		strings.Repeat(long+"/", 16) + "a": openat2fs.InvalidArgument,
	} {
		if p, err := openat2fs.ParsePath(unsafe); codeOf(err) != code || !p.IsRoot() {
			t.Errorf("%.40q: %v, %v, want %s", unsafe, p, err, code)
		}
	}
}

func TestSplitAndJoin(t *testing.T) {
	for _, text := range []string{"a", "a/b", "a/b/c"} {
		dir, name, err := path(t, text).Split()
		must(t, err)
		joined, err := dir.Join(name)
		must(t, err)
		if joined != path(t, text) || filepath.Base(text) != name.String() {
			t.Errorf("%s: %v and %v, joined %v", text, dir, name, joined)
		}
	}
	if _, _, err := (openat2fs.Path{}).Split(); codeOf(err) != openat2fs.PathEscape {
		t.Errorf("the root: %v", err)
	}
	if _, err := path(t, "a").Join(openat2fs.Name{}); codeOf(err) != openat2fs.InvalidArgument {
		t.Errorf("no name: %v", err)
	}
	for _, unsafe := range []string{"", ".", "..", "a/b", "a\x00b", strings.Repeat("x", 256)} {
		if n, err := openat2fs.ParseName(unsafe); err == nil {
			t.Errorf("%q became the name %q", unsafe, n)
		}
	}
}

// TestErrorsStayShort: what a client sends comes back bounded and harmless to a
// terminal.
func TestErrorsStayShort(t *testing.T) {
	_, err := openat2fs.ParsePath("\x1b[2J/" + strings.Repeat("\x01", 1<<20))
	if len(err.Error()) > 4<<10 || strings.ContainsAny(err.Error(), "\x1b\x01") {
		t.Errorf("%d bytes: %.80q", len(err.Error()), err.Error())
	}
}

// FuzzParsePath: what is a Path is its own clean form, and stays beneath.
func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{"a/b", "..", "a/../b", "/", "", "a//b", "~", "a\x00", "\xff/..", strings.Repeat("a/", 300)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, unsafe string) {
		p, err := openat2fs.ParsePath(unsafe)
		if err != nil {
			if codeOf(err) != openat2fs.PathEscape && codeOf(err) != openat2fs.InvalidArgument {
				t.Fatalf("%q: %v", unsafe, err)
			}
			return
		}
		if filepath.Clean(unsafe) != p.String() || !filepath.IsLocal(unsafe) || len(unsafe) > 4095 {
			t.Fatalf("%q is a path", unsafe)
		}
	})
}

// FuzzCursor: no cursor is more than a place to begin.
func FuzzCursor(f *testing.F) {
	g := newGround(f, openat2fs.Limits{})
	for _, name := range []string{"a", "b/c", "b/d", "e"} {
		g.write(name, "x")
	}
	g.link("out", g.outside)
	for _, seed := range []string{"", "MQ", "MS4uLy4uLw", "MWIv", "MWIvYwA", "!!", "Mi", strings.Repeat("MQ", 4000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		found, err := g.root.Find(context.Background(), openat2fs.Query{Cursor: cursor})
		if err != nil {
			if codeOf(err) != openat2fs.InvalidArgument {
				t.Fatalf("%q: %v", cursor, err)
			}
			return
		}
		all := strings.Fields("a b/c b/d e out")
		for i, p := range found.Paths {
			if p.String() != all[len(all)-len(found.Paths)+i] {
				t.Fatalf("%q: %v", cursor, found.Paths)
			}
		}
	})
}
