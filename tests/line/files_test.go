package line_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"codespace/tests/need"
)

func versionOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (s *session) file(tool string, args map[string]any) answer {
	s.t.Helper()
	all := map[string]any{"workspace_id": s.workspace}
	for k, v := range args {
		all[k] = v
	}
	return s.call(tool, all)
}

func TestReadParts(t *testing.T) {
	dir := workspace(t)
	text := []byte("one\ntwö\nthree\nlast without end")
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), text, 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "raw"), []byte{0xff, 'x', 0}, 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o644))
	s := start(t, dir)
	for _, c := range []struct {
		args map[string]any
		want fields
	}{
		{map[string]any{"path": "a.txt"}, fields{"content": string(text), "version": versionOf(text), "size": len(text), "truncated": false, "next_offset": nil, "encoding": "utf-8"}},
		{map[string]any{"path": "a.txt", "offset": 4, "length": 4}, fields{"content": "twö", "truncated": false, "next_offset": 8, "version": versionOf(text)}},
		{map[string]any{"path": "a.txt", "start_line": 2, "line_count": 2}, fields{"content": "twö\nthree\n", "next_offset": 15, "version": versionOf(text)}},
		{map[string]any{"path": "a.txt", "start_line": 4}, fields{"content": "last without end", "truncated": false}},
		{map[string]any{"path": "raw"}, fields{"content": "\uFFFDx\x00", "size": 3}},
		{map[string]any{"path": "raw", "encoding": "base64"}, fields{"content": base64.StdEncoding.EncodeToString([]byte{0xff, 'x', 0}), "encoding": "base64"}},
		{map[string]any{"path": "empty"}, fields{"content": "", "size": 0, "version": versionOf(nil)}},
	} {
		got := s.file("read", c.args)
		if got.isError {
			t.Errorf("%v: %v", c.args, got.fields)
			continue
		}
		got.wants(t, c.want)
		if content := got.text("content"); !strings.HasSuffix(got.said, "\n"+content) {
			t.Errorf("%v: the text block is %q", c.args, got.said)
		}
	}
}

// A large file is read whole by following next_offset, each page as one.
func TestReadPages(t *testing.T) {
	dir := workspace(t)
	content := bytes.Repeat([]byte("zeile mit ümläut <&>\n"), 5000)
	must(t, os.WriteFile(filepath.Join(dir, "big"), content, 0o644))
	s := start(t, dir)
	for _, encoding := range []string{"utf-8", "base64"} {
		var got []byte
		pages, offset := 0, 0
		for more := true; more; pages++ {
			page := s.file("read", map[string]any{"path": "big", "offset": offset, "encoding": encoding})
			if page.text("version") != versionOf(content) || len(page.text("content")) > 10_000 {
				t.Fatalf("page %d: version %s, %d bytes", pages, page.text("version"), len(page.text("content")))
			}
			part := []byte(page.text("content"))
			if encoding == "base64" {
				var err error
				part, err = base64.StdEncoding.DecodeString(string(part))
				must(t, err)
			}
			got = append(got, part...)
			if more = page.text("truncated") == "true"; more {
				offset = int(page.number("next_offset"))
			}
		}
		if !bytes.Equal(got, content) || pages < 10 {
			t.Errorf("%s: %d bytes in %d pages, want %d", encoding, len(got), pages, len(content))
		}
	}
}

// What is no regular file of the workspace is refused by its own code, at once.
func TestReadRefuses(t *testing.T) {
	dir := workspace(t)
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, filepath.Dir(outside), map[string]string{"outside": "canary"})
	write(t, dir, map[string]string{"d/f": "x", "f": "x"})
	must(t, os.Symlink(outside, filepath.Join(dir, "link")))
	must(t, os.Symlink("d", filepath.Join(dir, "dirlink")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	s := start(t, dir)
	s.file("read", map[string]any{"path": "f"})
	for path, code := range map[string]string{
		"link": "SYMLINK_REJECTED", "dirlink/f": "SYMLINK_REJECTED", "fifo": "SPECIAL_FILE_REJECTED", "d": "SPECIAL_FILE_REJECTED",
		"absent": "FILE_NOT_FOUND", "f/x": "PATH_NOT_DIRECTORY", "../outside": "PATH_ESCAPE", "/etc/passwd": "PATH_ESCAPE", ".": "PATH_ESCAPE",
		outside: "PATH_ESCAPE", "a\x00b": "INVALID_ARGUMENT",
	} {
		began := time.Now()
		got := s.file("read", map[string]any{"path": path}).refused(t, code)
		if took := time.Since(began); took > time.Second {
			t.Errorf("%q took %v", path, took)
		}
		if strings.Contains(fmt.Sprint(got.fields, got.said), "canary") || !filepath.IsAbs(path) && strings.Contains(got.said, filepath.Dir(outside)) {
			t.Errorf("%q: %v %s", path, got.fields, got.said)
		}
	}
	s.file("read", map[string]any{"path": "f", "offset": 1, "start_line": 1}).refused(t, "INVALID_ARGUMENT")
	s.file("read", map[string]any{"path": "f", "offset": 2}).refused(t, "INVALID_ARGUMENT")
	s.call("read", map[string]any{"workspace_id": "nowhere", "path": "f"}).refused(t, "WORKSPACE_NOT_FOUND")
}

// found are all paths of a search, page by page.
func (s *session) found(args map[string]any) (all []string, pages int) {
	s.t.Helper()
	for {
		got := s.file("find", args)
		if got.isError {
			s.t.Fatal(got.fields)
		}
		pages++
		list, _ := got.fields["paths"].([]any)
		for _, p := range list {
			all = append(all, p.(string))
		}
		next := got.text("next_cursor")
		if next == "" {
			return all, pages
		}
		args["cursor"] = next
	}
}

func TestFind(t *testing.T) {
	dir := workspace(t)
	tree := map[string]string{"a.go": "", "b/c.go": "", "b/d/e.go": "", "b/d/e.txt": "", "z z\nz": ""}
	var many []string
	for i := range 1500 {
		name := fmt.Sprintf("many/file-%04d-with-a-longer-name", i)
		tree[name], many = "", append(many, name)
	}
	write(t, dir, tree)
	must(t, os.Symlink("/etc", filepath.Join(dir, "etc")))
	must(t, os.WriteFile(filepath.Join(dir, "b", "\xff"), nil, 0o644))
	s := start(t, dir)
	for glob, want := range map[string][]string{
		"**/*.go": {"a.go", "b/c.go", "b/d/e.go"}, "*.go": {"a.go"}, "b/**": {"b/c.go", "b/d/e.go", "b/d/e.txt"},
		"none*": nil, "etc": {"etc"}, "etc/*": nil, "z*": {"z z\nz"}, "many/**": many,
	} {
		got, pages := s.found(map[string]any{"glob": glob})
		if !slices.Equal(got, want) || (pages > 1) != (len(want) > 100) {
			t.Errorf("%s: %d paths in %d pages, want %d: %.200q", glob, len(got), pages, len(want), got)
		}
	}
	s.file("find", map[string]any{"glob": "b/*"}).wants(t, fields{"paths_not_utf8": 1})
	if got, pages := s.found(map[string]any{"glob": "many/*", "limit": 400}); !slices.Equal(got, many) || pages < 4 {
		t.Errorf("400 at a time: %d paths in %d pages", len(got), pages)
	}
	s.file("find", map[string]any{"glob": "../**"}).refused(t, "PATH_ESCAPE")
	s.file("find", map[string]any{"glob": "[a"}).refused(t, "INVALID_ARGUMENT")
	s.file("find", map[string]any{"cursor": "made up"}).refused(t, "INVALID_ARGUMENT")
}

func TestVersions(t *testing.T) {
	dir := workspace(t)
	write(t, dir, map[string]string{"f": "content", "d/g": ""})
	must(t, os.Chmod(filepath.Join(dir, "f"), 0o640))
	must(t, os.Symlink("f", filepath.Join(dir, "l")))
	s := start(t, dir)
	got := s.file("version", map[string]any{"paths": []string{"f", "gone", "d", "l"}})
	list, _ := got.fields["versions"].([]any)
	if len(list) != 4 {
		t.Fatalf("%v", got.fields)
	}
	for i, want := range []fields{
		{"path": "f", "version": versionOf([]byte("content")), "size": 7, "mode": "0640", "kind": "file"},
		{"path": "gone", "version": "absent", "kind": nil},
		{"path": "d", "version": nil, "kind": "directory"},
		{"path": "l", "version": nil, "kind": "link"},
	} {
		answer{fields: list[i].(map[string]any)}.wants(t, want)
	}
	var paths []string
	for i := range 700 {
		paths = append(paths, fmt.Sprintf("absent-%d", i))
	}
	args, seen := map[string]any{"paths": paths}, 0
	for more := true; more; {
		page := s.file("version", args)
		rows, _ := page.fields["versions"].([]any)
		for _, row := range rows {
			if (answer{fields: row.(map[string]any)}).text("path") != paths[seen] {
				t.Fatalf("row %d is %v", seen, row)
			}
			seen++
		}
		args["cursor"] = page.text("next_cursor")
		more = page.text("truncated") == "true"
	}
	if seen != len(paths) {
		t.Errorf("%d of %d rows", seen, len(paths))
	}
	s.file("version", map[string]any{"paths": []string{"f"}, "cursor": "1"}).refused(t, "INVALID_ARGUMENT")
	s.file("version", map[string]any{"paths": []string{"../f"}}).refused(t, "PATH_ESCAPE")
}

// Files are there to be read while a command changes them, and a workspace whose
// directory was replaced is the new one.
func TestFilesBesideAWriter(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	id := s.started(shell("echo first > f; echo up; while [ ! -e go ]; do sleep 0.05; done; echo second > f")...)
	s.until(id, "up\n")
	s.file("read", map[string]any{"path": "f"}).wants(t, fields{"content": "first\n"})
	if got, _ := s.found(map[string]any{}); !slices.Equal(got, []string{"f"}) {
		t.Errorf("found %q", got)
	}
	write(t, dir, map[string]string{"go": ""})
	s.exited(id)
	s.file("read", map[string]any{"path": "f"}).wants(t, fields{"content": "second\n", "version": versionOf([]byte("second\n"))})
	must(t, os.Rename(dir, dir+".old"))
	s.file("read", map[string]any{"path": "f"}).refused(t, "FILE_OPERATION_FAILED")
	must(t, os.Mkdir(dir, 0o755))
	write(t, dir, map[string]string{"f": "new"})
	s.file("read", map[string]any{"path": "f"}).wants(t, fields{"content": "new"})
}

// Files are read as who the workspace belongs to: what a command cannot read because
// it is somebody else's, the tools cannot either, although the runner is root.
func TestFilesAsTheOwner(t *testing.T) {
	need.Root(t)
	for _, uid := range []int{0, 23456} {
		dir := workspace(t)
		write(t, dir, map[string]string{"mine": "mine", "theirs": "secret", "shut/inside": "secret"})
		for name, of := range map[string]int{".": uid, "mine": uid, "theirs": 34567, "shut": 34567, "shut/inside": 34567} {
			must(t, os.Chown(filepath.Join(dir, name), of, of))
		}
		must(t, os.Chmod(filepath.Join(dir, "mine"), 0o600))
		must(t, os.Chmod(filepath.Join(dir, "theirs"), 0o600))
		must(t, os.Chmod(filepath.Join(dir, "shut"), 0o700))
		s := start(t, dir)
		if _, out := s.run(shell("cat mine; cat theirs shut/inside; ls shut")...); strings.Contains(out, "secret") || strings.Count(out, "denied") != 3 || !strings.HasPrefix(out, "mine") {
			t.Fatalf("control: a command reads %q", out)
		}
		s.file("read", map[string]any{"path": "mine"}).wants(t, fields{"content": "mine"})
		s.file("read", map[string]any{"path": "theirs"}).refused(t, "FILE_OPERATION_FAILED")
		s.file("read", map[string]any{"path": "shut/inside"}).refused(t, "FILE_OPERATION_FAILED")
		if got, _ := s.found(map[string]any{}); !slices.Equal(got, []string{"mine", "theirs"}) {
			t.Errorf("uid %d: found %q", uid, got)
		}
		got := s.file("version", map[string]any{"paths": []string{"theirs", "shut/inside"}})
		if strings.Contains(fmt.Sprint(got.fields), "sha256:") {
			t.Errorf("uid %d: versions %v", uid, got.fields)
		}
	}
}
