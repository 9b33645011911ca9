package openat2fs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"codespace/openat2fs"
	"codespace/tests/need"

	"github.com/bmatcuk/doublestar/v4"
)

func texts(found openat2fs.Found) []string {
	all := []string{}
	for _, p := range found.Paths {
		all = append(all, p.String())
	}
	return all
}

func (g *ground) find(q openat2fs.Query) openat2fs.Found {
	g.t.Helper()
	found, err := g.root.Find(context.Background(), q)
	must(g.t, err)
	return found
}

// pages follows the cursor to the end.
func (g *ground) pages(q openat2fs.Query) []string {
	g.t.Helper()
	var all []string
	for range 100_000 {
		found := g.find(q)
		all = append(all, texts(found)...)
		if found.Next == "" {
			if found.Truncated {
				g.t.Fatalf("cannot go on: %s", found.Reason)
			}
			return all
		}
		if !found.Truncated {
			g.t.Fatal("goes on although nothing is missing")
		}
		q.Cursor = found.Next
	}
	g.t.Fatal("the pages do not end")
	return nil
}

// tree makes files of random names in random directories and is their paths,
// sorted.
func (g *ground) tree(random *rand.Rand, files int) []string {
	letters := []string{"a", "b", ".", "-", "0", "/", "/", ".go", "ä", "~", "\xff"}
	all := map[string]bool{}
	for len(all) < files {
		name := strings.Builder{}
		for range 1 + random.IntN(8) {
			name.WriteString(letters[random.IntN(len(letters))])
		}
		p, err := openat2fs.ParsePath(name.String())
		if err != nil {
			continue
		}
		if dir := strings.LastIndexByte(p.String(), '/'); dir > 0 && os.MkdirAll(g.at(p.String()[:dir]), 0o755) != nil {
			continue
		}
		if os.WriteFile(g.at(p.String()), nil, 0o644) == nil {
			all[p.String()] = true
		}
	}
	sorted := make([]string, 0, len(all))
	for name := range all {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return sorted
}

func TestFindIsSorted(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	names := []string{"a-b", "a/x", "a.go", "a/b/c", "a0", "A", "a/b-c", "a/b0", "z/", "empty/"}
	want := []string{"A", "a-b", "a.go", "a/b-c", "a/b/c", "a/b0", "a/x", "a0"}
	for _, name := range names {
		if dir, ok := strings.CutSuffix(name, "/"); ok {
			must(t, os.Mkdir(g.at(dir), 0o755))
		} else {
			g.write(name, "")
		}
	}
	if got := texts(g.find(openat2fs.Query{})); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for limit := 1; limit <= len(want)+1; limit++ {
		if got := g.pages(openat2fs.Query{Limit: limit}); !slices.Equal(got, want) {
			t.Errorf("in pages of %d: %q", limit, got)
		}
	}
}

// TestFindAgainstAModel: random trees, globs and pages against a match of every
// whole path.
func TestFindAgainstAModel(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	globs := []string{"", "**", "*", "**/*", "a/**", "**/a", "**/*.go", "*/*.go", "**/a/**", "a*/**/b*", "{a,b}/**", "**/{a,b/a}*", "[ab]*", "**/[!a]*",
		"**/?", "a", "a/b", "**/*-*", "{a,b,0}{a,b,0,}", "**/a*b", "**/.*", "*/**/*", "**/ä*", `\a*`, "none/**", "**/{*.go,~*}"}
	for round := range 12 {
		limits := openat2fs.Limits{FindEntries: 1 + random.IntN(200)}
		g := newGround(t, limits)
		all := g.tree(random, 30+random.IntN(200))
		for _, glob := range globs {
			var want []string
			for _, name := range all {
				if ok, err := doublestar.Match(glob, name); err != nil || ok || glob == "" {
					want = append(want, name)
				}
			}
			q := openat2fs.Query{Glob: glob, Limit: 1 + random.IntN(60)}
			if got := g.pages(q); !slices.Equal(got, want) {
				t.Fatalf("round %d, glob %q, limit %d, %+v:\ngot  %q\nwant %q", round, glob, q.Limit, limits, got, want)
			}
		}
	}
}

// TestLargeDirectory does not fit into one listing.
func TestLargeDirectory(t *testing.T) {
	g := newGround(t, openat2fs.Limits{FindPaths: 1 << 20, FindEntries: 1 << 20})
	files := 150_000
	if testing.Short() {
		files = 70_000
	}
	want := make([]string, 0, files+1)
	must(t, os.Mkdir(g.at("d"), 0o755))
	for i := range files {
		name := fmt.Sprintf("d/%06d", (i*7919)%files)
		want = append(want, name)
		must(t, os.Link(g.linkable(), g.at(name)))
	}
	g.write("e", "")
	slices.Sort(want)
	want = append(want, "e")
	start := time.Now()
	found := g.find(openat2fs.Query{})
	t.Logf("%d files of one directory in %v", files, time.Since(start))
	if got := texts(found); !slices.Equal(got, want) || found.Truncated {
		t.Errorf("%d of %d paths, truncated %v", len(got), len(want), found.Truncated)
	}
	if got := g.pages(openat2fs.Query{Limit: files / 3}); !slices.Equal(got, want) {
		t.Errorf("in pages: %d of %d paths", len(got), len(want))
	}
}

// linkable is a file whose names are cheaper than files; a new one when the file
// system's limit of names is near.
func (g *ground) linkable() string {
	g.links++
	name := fmt.Sprintf("%s/linkable-%d", g.outside, g.links/30_000)
	if g.links == 1 || g.links%30_000 == 0 {
		must(g.t, os.WriteFile(name, nil, 0o644))
	}
	return name
}

func TestFindLimits(t *testing.T) {
	g := newGround(t, openat2fs.Limits{FindPaths: 5, FindDepth: 3})
	for _, name := range []string{"a/b/c/at", "a/b/c/d/below", "f1", "f2", "f3", "f4"} {
		g.write(name, "")
	}
	found := g.find(openat2fs.Query{Limit: 99})
	if !slices.Equal(texts(found), []string{"a/b/c/at", "f1", "f2", "f3", "f4"}) || !found.Truncated || found.Reason != "depth" || found.Next != "" {
		t.Errorf("depth: %+v", found)
	}
	g.write("f5", "")
	if found := g.find(openat2fs.Query{}); found.Reason != "paths" || found.Next == "" || len(found.Paths) != 5 {
		t.Errorf("paths: %+v", found)
	}
	if found := g.find(openat2fs.Query{Glob: "f*"}); found.Truncated || len(found.Paths) != 5 {
		t.Errorf("exactly the limit is not truncated: %+v", found)
	}
	late := open(t, g.dir, openat2fs.Limits{FindTime: 1})
	if found, err := late.Find(context.Background(), openat2fs.Query{}); err != nil || !found.Truncated || found.Reason != "time" || found.Next != "" {
		t.Errorf("time: %+v, %v", found, err)
	}
	// Many entries that match nothing are looked at in one page and left behind.
	few := open(t, g.dir, openat2fs.Limits{FindEntries: 2})
	q, n := openat2fs.Query{Glob: "**/at"}, 0
	for pages := 0; ; pages++ {
		found, err := few.Find(context.Background(), q)
		must(t, err)
		n += len(found.Paths)
		if q.Cursor = found.Next; q.Cursor == "" || pages > 20 {
			break
		}
	}
	if n != 1 {
		t.Errorf("entries: found %d times", n)
	}
}

func TestFindSkipsWhatMayNotBeRead(t *testing.T) {
	need.PlainUser(t)
	g := newGround(t, openat2fs.Limits{})
	g.write("closed/f", "")
	g.write("open/f", "")
	must(t, os.Chmod(g.at("closed"), 0))
	defer os.Chmod(g.at("closed"), 0o700)
	found := g.find(openat2fs.Query{})
	if !slices.Equal(texts(found), []string{"open/f"}) || found.Skipped != 1 {
		t.Errorf("%+v", found)
	}
	g.write("secret", "")
	must(t, os.Chmod(g.at("secret"), 0))
	e := g.refused(openat2fs.FileOperationFailed, func() error { _, err := g.read("secret", openat2fs.Range{}); return err })
	if !os.IsPermission(e.Unwrap()) {
		t.Errorf("errno %v", e.Errno)
	}
}

func TestGlobsRefused(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	for glob, code := range map[string]openat2fs.Code{
		"/a": openat2fs.PathEscape, "../a": openat2fs.PathEscape, "a/../b": openat2fs.PathEscape, "./a": openat2fs.PathEscape, "{a,../b}": openat2fs.PathEscape,
		"a//b": openat2fs.InvalidArgument, "a/": openat2fs.InvalidArgument, "[": openat2fs.InvalidArgument, "{a": openat2fs.InvalidArgument, `a\`: openat2fs.InvalidArgument,
		"a\x00": openat2fs.InvalidArgument, "[a/b]": openat2fs.InvalidArgument, strings.Repeat("a", 1025): openat2fs.InvalidArgument,
		strings.Repeat("{a,b}", 7): openat2fs.InvalidArgument, strings.Repeat("{a,{b,", 50) + strings.Repeat("}}", 50): openat2fs.InvalidArgument,
		strings.Repeat("a/", 400) + "a": openat2fs.InvalidArgument,
	} {
		t.Run(fmt.Sprintf("%.20s", glob), func(t *testing.T) {
			g.refused(code, func() error { _, err := g.root.Find(context.Background(), openat2fs.Query{Glob: glob}); return err })
		})
	}
	g.refused(openat2fs.InvalidArgument, func() error { _, err := g.root.Find(context.Background(), openat2fs.Query{Limit: -1}); return err })
	// The worst that is allowed is still answered at once.
	g.write(strings.Repeat("a", 200), "")
	for _, glob := range []string{strings.Repeat("*a", 500) + "b", "{" + strings.Repeat("*a*a*,", 60) + "b}", strings.Repeat("**/", 254) + "b"} {
		soon(t, func() { g.find(openat2fs.Query{Glob: glob}) })
	}
}

// TestStarsMatchNothing: found by FuzzGlob.
func TestStarsMatchNothing(t *testing.T) {
	for glob, name := range map[string]string{"a*/**": "a", "a***": "a", "**/0*****/0": "0/0", `\**`: "*x", `a\***`: "a*", "***": "a", "[*]**": "*"} {
		if ok, _ := openat2fs.GlobMatches(glob, name); !ok {
			t.Errorf("%q does not match %q", glob, name)
		}
	}
	if ok, _ := openat2fs.GlobMatches(`\**`, "x"); ok {
		t.Error("an escaped star is a star")
	}
}

// FuzzGlob: component by component is the same as doublestar over whole paths,
// but for classes, which match no slash here.
func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{{"**/*.go", "a/b.go"}, {"a/**", "a"}, {"{a,b/c}/*", "b/c/d"}, {"[!a]", "b"}, {"a**b", "axb"}, {`\*`, "*"}, {"{a,{b,c}}", "c"}, {"**/**", "a"}, {"***", "a"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, glob, name string) {
		start := time.Now()
		got, ok := openat2fs.GlobMatches(glob, name)
		if took := time.Since(start); took > 2*time.Second {
			t.Fatalf("glob %q, path %q: took %v", glob, name, took)
		}
		// doublestar takes all bytes that are no UTF-8 for the same one.
		// And its time is exponential in the braces.
		comparable := ok && glob != "" && strings.Count(glob, "{") < 4 && strings.Count(glob, "*") < 8 && !strings.ContainsAny(glob+name, "[\ufffd") && utf8.ValidString(glob) && utf8.ValidString(name)
		if _, err := openat2fs.ParsePath(name); err != nil || !comparable {
			return
		}
		want, err := doublestar.Match(glob, name)
		if got && strings.Contains(glob, "**") {
			// "a/**" matches "a" in both, "a*/**" and "a***" only here: for
			// doublestar, what is left of them cannot be nothing.
			return
		}
		if err == nil && got != want {
			t.Fatalf("glob %q, path %q: %v", glob, name, got)
		}
	})
}
