package openat2fs_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"codespace/openat2fs"
)

func version(content string) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content)))
}

func TestRead(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	const text = "one\ntwo\n\nfö€r𝄞\nlast"
	g.write("d/text", text)
	g.write("empty", "")
	size := int64(len(text))
	for _, c := range []struct {
		name  string
		file  string
		asked openat2fs.Range
		want  string
		at    int64
		cut   bool
	}{
		{"whole", "d/text", openat2fs.Range{}, text, 0, false},
		{"bytes", "d/text", openat2fs.Range{Offset: 1, Length: 5}, text[1:6], 1, false},
		{"length beyond the end", "d/text", openat2fs.Range{Offset: 4, Length: 1 << 62}, text[4:], 4, false},
		{"at the end", "d/text", openat2fs.Range{Offset: size}, "", size, false},
		{"page", "d/text", openat2fs.Range{Max: 3}, "one", 0, true},
		{"page as long as the file", "d/text", openat2fs.Range{Max: size}, text, 0, false},
		{"page shorter than asked", "d/text", openat2fs.Range{Length: 5, Max: 3}, "one", 0, true},
		{"split sequence", "d/text", openat2fs.Range{Length: 12, Max: 100}, text[:12], 0, false},
		{"text before a sequence", "d/text", openat2fs.Range{Length: 14, Text: true}, "one\ntwo\n\nfö", 0, true},
		{"text of one sequence", "d/text", openat2fs.Range{Offset: 12, Length: 1, Text: true}, "€", 12, false},
		{"text within a sequence", "d/text", openat2fs.Range{Offset: 13, Length: 1, Text: true}, text[13:14], 13, false},
		{"text of four bytes", "d/text", openat2fs.Range{Offset: 16, Max: 1, Text: true}, "𝄞", 16, true},
		{"first line", "d/text", openat2fs.Range{StartLine: 1, LineCount: 1}, "one\n", 0, false},
		{"middle lines", "d/text", openat2fs.Range{StartLine: 2, LineCount: 2}, "two\n\n", 4, false},
		{"lines to the end", "d/text", openat2fs.Range{StartLine: 4}, "fö€r𝄞\nlast", 9, false},
		{"last line", "d/text", openat2fs.Range{StartLine: 5, LineCount: 9}, "last", 21, false},
		{"lines over a page", "d/text", openat2fs.Range{StartLine: 1, LineCount: 2, Max: 5}, "one\nt", 0, true},
		{"text lines over a page", "d/text", openat2fs.Range{StartLine: 4, Max: 2, Text: true}, "f", 9, true},
		{"a line as long as the page", "d/text", openat2fs.Range{StartLine: 1, LineCount: 1, Max: 4}, "one\n", 0, false},
		{"empty file", "empty", openat2fs.Range{}, "", 0, false},
		{"first line of nothing", "empty", openat2fs.Range{StartLine: 1, LineCount: 1}, "", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			page, err := g.read(c.file, c.asked)
			must(t, err)
			whole, err := os.ReadFile(g.at(c.file))
			must(t, err)
			if string(page.Content) != c.want || page.Offset != c.at || page.Truncated != c.cut || page.Next != c.at+int64(len(c.want)) {
				t.Errorf("got %q at %d next %d truncated %v", page.Content, page.Offset, page.Next, page.Truncated)
			}
			if page.Version != version(string(whole)) || page.Stat.Size != int64(len(whole)) || page.Stat.Kind != openat2fs.File || page.Line != c.asked.StartLine {
				t.Errorf("version %s, stat %+v, line %d", page.Version, page.Stat, page.Line)
			}
		})
	}
	for _, asked := range []openat2fs.Range{
		{Offset: size + 1}, {StartLine: 6}, {Offset: -1}, {Length: -1}, {StartLine: -1}, {Max: -1},
		{Offset: 1, StartLine: 1}, {LineCount: 1}, {Length: 1, StartLine: 1}} {
		g.refused(openat2fs.InvalidArgument, func() error { _, err := g.read("d/text", asked); return err })
	}
}

// TestPagesMakeTheFile: pages one after another are the file, byte for byte, and
// text pages of UTF-8 are UTF-8.
func TestPagesMakeTheFile(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	random := rand.New(rand.NewPCG(1, 2))
	letters := []string{"a", "\n", "ö", "€", "𝄞", "\r\n", "\u2028"}
	for round := range 60 {
		var text strings.Builder
		for range random.IntN(2000) {
			text.WriteString(letters[random.IntN(len(letters))])
		}
		broken := round%3 == 2
		if broken {
			text.WriteString("\xff\xe2\x82")
		}
		g.write("f", text.String())
		asked := openat2fs.Range{Max: int64(1 + random.IntN(50)), Text: true}
		var all []byte
		for {
			page, err := g.read("f", asked)
			must(t, err)
			if !broken && !utf8.Valid(page.Content) {
				t.Fatalf("page %q is split", page.Content)
			}
			all = append(all, page.Content...)
			if page.Next == page.Stat.Size {
				break
			}
			if page.Next <= asked.Offset || !page.Truncated {
				t.Fatalf("page at %d goes on at %d, truncated %v", asked.Offset, page.Next, page.Truncated)
			}
			asked.Offset = page.Next
		}
		if string(all) != text.String() {
			t.Fatalf("the pages differ from the file")
		}
	}
}

// TestLargeFiles cross the pieces in which a file is read.
func TestLargeFiles(t *testing.T) {
	g := newGround(t, openat2fs.Limits{HashBytes: 1 << 20})
	ctx := context.Background()
	for _, size := range []int{128<<10 - 1, 128 << 10, 128<<10 + 1, 256 << 10, 1 << 20} {
		content := bytes.Repeat([]byte("0123456\n"), size/8+1)[:size]
		g.write("f", string(content))
		page, err := g.read("f", openat2fs.Range{Offset: int64(size) - 70_000})
		must(t, err)
		if page.Version != version(string(content)) || !bytes.Equal(page.Content, content[size-70_000:size-70_000+openat2fs.PageBytes]) {
			t.Errorf("%d bytes: wrong page", size)
		}
		page, err = g.read("f", openat2fs.Range{StartLine: int64(size)/8 - 2, LineCount: 2})
		must(t, err)
		if string(page.Content) != "0123456\n0123456\n" {
			t.Errorf("%d bytes: lines %q", size, page.Content)
		}
		whole, st, err := g.root.Load(ctx, path(t, "f"), []byte("before "))
		must(t, err)
		if string(whole) != "before "+string(content) || st.Size != int64(size) {
			t.Errorf("%d bytes: loaded %d", size, len(whole))
		}
	}
	must(t, os.Truncate(g.at("f"), 1<<20+1))
	g.refused(openat2fs.FileTooLarge, func() error { _, err := g.read("f", openat2fs.Range{Length: 1}); return err })
	must(t, os.Truncate(g.at("f"), 8<<40))
	g.refused(openat2fs.FileTooLarge, func() error { _, err := g.read("f", openat2fs.Range{Length: 1}); return err })
	g.refused(openat2fs.FileTooLarge, func() error { _, _, err := g.root.Load(ctx, path(t, "f"), nil); return err })
	all, err := g.root.Versions(ctx, []openat2fs.Path{path(t, "f")})
	must(t, err)
	if all[0].Err == nil || all[0].Err.Code != openat2fs.FileTooLarge || all[0].Version != "" || all[0].Stat.Size != 8<<40 {
		t.Errorf("%+v", all[0])
	}
}

func TestVersions(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	g.write("a/f", "content")
	must(t, os.Chmod(g.at("a/f"), 0o750))
	g.link("link", "a")
	var paths []openat2fs.Path
	for _, name := range []string{"a/f", "none", "none/none", "a", "link", "link/f", "a/f/g"} {
		paths = append(paths, path(t, name))
	}
	all, err := g.root.Versions(context.Background(), paths)
	must(t, err)
	for i, want := range []struct {
		version string
		kind    openat2fs.Kind
		code    openat2fs.Code
	}{
		{version("content"), openat2fs.File, ""}, {openat2fs.Absent, "", ""}, {openat2fs.Absent, "", ""}, {"", openat2fs.Directory, ""},
		{"", openat2fs.Link, ""}, {"", "", openat2fs.SymlinkRejected}, {"", "", openat2fs.PathNotDirectory},
	} {
		got := all[i]
		code := openat2fs.Code("")
		if got.Err != nil {
			code = got.Err.Code
		}
		if got.Path != paths[i] || got.Version != want.version || got.Stat.Kind != want.kind || code != want.code {
			t.Errorf("%v: %+v, want %+v", paths[i], got, want)
		}
	}
	if st := all[0].Stat; st.Mode != 0o750 || st.Size != 7 || st.Links != 1 || int(st.UID) != os.Geteuid() {
		t.Errorf("stat %+v", st)
	}
}

// TestChangedWhileRead: a file that changes as fast as it is read is answered by
// PATH_CONTENDED, or by bytes and the version of those bytes.
func TestChangedWhileRead(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	const size = 256 << 10
	states := [][]byte{bytes.Repeat([]byte("a"), size), bytes.Repeat([]byte("b"), size)}
	g.write("f", string(states[0]))
	f, err := os.OpenFile(g.at("f"), os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	stop, done := make(chan struct{}), sync.WaitGroup{}
	done.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				f.WriteAt(states[i%2], 0)
			}
		}
	})
	contended, reads := 0, 0
	for deadline := time.Now().Add(time.Minute); reads < 50 || contended == 0 && time.Now().Before(deadline); reads++ {
		page, err := g.read("f", openat2fs.Range{Max: 1 << 20})
		if codeOf(err) == openat2fs.PathContended {
			contended++
			continue
		}
		must(t, err)
		if page.Version != version(string(page.Content)) || len(page.Content) != size {
			t.Fatalf("%d bytes are not of version %s", len(page.Content), page.Version)
		}
	}
	close(stop)
	done.Wait()
	t.Logf("%d of %d reads answered PATH_CONTENDED", contended, reads)
	if contended == 0 {
		t.Error("the writer was never noticed")
	}
}

func TestContextEnds(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	g.write("f", "x")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := path(t, "f")
	for name, call := range map[string]func() error{
		"read":     func() error { _, err := g.root.Read(ctx, p, openat2fs.Range{}); return err },
		"load":     func() error { _, _, err := g.root.Load(ctx, p, nil); return err },
		"stat":     func() error { _, err := g.root.Stat(ctx, p); return err },
		"versions": func() error { _, err := g.root.Versions(ctx, []openat2fs.Path{p}); return err },
		"find":     func() error { _, err := g.root.Find(ctx, openat2fs.Query{}); return err },
		"dir":      func() error { _, err := g.root.OpenDir(ctx, openat2fs.Path{}); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
