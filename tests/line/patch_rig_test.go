package line_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode"
)

// disk is what a directory holds: contents by path.
type disk map[string]string

// around is a patch of those hunks.
func around(hunks string) string { return "*** Begin Patch\n" + hunks + "*** End Patch\n" }

// update is a patch of the file f.
func update(chunks string) string { return around("*** Update File: f\n" + chunks) }

// patch sends a patch, with more arguments.
func (s *session) patch(text string, more fields) answer {
	s.t.Helper()
	args := map[string]any{"patch": text}
	maps.Copy(args, more)
	return s.file("apply_patch", args)
}

// applied wants a patch to be applied, and said so in both forms.
func (a answer) applied(t testing.TB) answer {
	t.Helper()
	if a.isError {
		t.Fatalf("not applied: %v", a.fields)
	}
	a.wants(t, fields{"status": "applied"})
	a.saidTwice(t)
	return a
}

// saidTwice wants every value of the structured form in the text, too.
func (a answer) saidTwice(t testing.TB) {
	t.Helper()
	var look func(name string, v any)
	look = func(name string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, below := range v {
				look(name+"."+key, below)
			}
		case []any:
			for _, below := range v {
				look(name, below)
			}
		default:
			if word := shown(v); !strings.Contains(a.said, word) {
				t.Errorf("%s is %s, which the text does not say: %.2000q", name, word, a.said)
			}
		}
	}
	look("", a.fields)
	if len(a.fields) == 0 {
		t.Errorf("there is no structured form beside %q", a.said)
	}
}

// shown is a value as a text shows it: one unmistakable line.
func shown(v any) string {
	word := answer{fields: fields{"v": v}}.text("v")
	if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(word)
	}
	return word
}

// rows are the rows of a list of an answer.
func (a answer) rows(key string) []answer {
	list, _ := a.fields[key].([]any)
	rows := make([]answer, len(list))
	for i, row := range list {
		rows[i].fields, _ = row.(map[string]any)
	}
	return rows
}

// told is what an answer says was changed: kind and path, and the path before a move.
func (a answer) told() []string {
	var all []string
	for _, row := range a.rows("changes") {
		all = append(all, strings.TrimSuffix(row.text("kind")+" "+row.text("path")+" "+row.text("from"), " "))
	}
	return all
}

// seen is all there is in a directory, by path: kind and mode, and what it holds.
// A file has content and, if exactly, all that tells it from a copy; then the
// directory itself is seen as well.
func seen(t testing.TB, dir string, exactly bool) disk {
	t.Helper()
	all := disk{}
	must(t, filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == dir && !exactly {
			return err
		}
		name, err := filepath.Rel(dir, at)
		if err == nil {
			all[name], err = looked(at, exactly)
		}
		return err
	}))
	return all
}

func looked(at string, exactly bool) (string, error) {
	info, err := os.Lstat(at)
	if err != nil {
		return "", err
	}
	what := info.Mode().String()
	switch info.Mode().Type() {
	case 0:
		content, err := os.ReadFile(at)
		if err != nil {
			return "", err
		}
		what += " " + string(content)
	case fs.ModeSymlink:
		to, err := os.Readlink(at)
		if err != nil {
			return "", err
		}
		what += " " + to
	}
	if exactly {
		st := info.Sys().(*syscall.Stat_t) // always so on Linux
		what += fmt.Sprintf(" %d %d:%d %d %v %v %x", st.Ino, st.Uid, st.Gid, st.Nlink, st.Mtim, st.Ctim, st.Rdev)
	}
	return what, nil
}

// laid is what seen should show of a disk with those modes; a file without one has
// 0644 and a directory 0755. A path with a slash at its end is an empty directory.
func laid(d disk, modes map[string]fs.FileMode) disk {
	all := disk{}
	put := func(name string, kind, usual fs.FileMode, content string) {
		mode, there := modes[name]
		if !there {
			mode = usual
		}
		all[name] = (kind | mode).String() + content
	}
	for name, content := range d {
		bare := strings.TrimSuffix(name, "/")
		if bare == name {
			put(name, 0, 0o644, " "+content)
		} else {
			put(bare, fs.ModeDir, 0o755, "")
		}
		for dir := path.Dir(bare); dir != "."; dir = path.Dir(dir) {
			put(dir, fs.ModeDir, 0o755, "")
		}
	}
	return all
}

// lay empties a directory and puts a disk there.
func lay(t testing.TB, dir string, d disk, modes map[string]fs.FileMode) {
	t.Helper()
	empty(t, dir)
	for name, content := range d {
		at := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(at, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must(t, os.WriteFile(at, []byte(content), 0o644))
	}
	for name, mode := range modes {
		must(t, os.Chmod(filepath.Join(dir, name), mode))
	}
}

func empty(t testing.TB, dir string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(at, 0o755)
		}
		return err
	}))
	all, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range all {
		must(t, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
}

// same compares what there is with what should be, and names each difference.
func same(t testing.TB, got, want disk) {
	t.Helper()
	names := map[string]bool{}
	for name := range got {
		names[name] = true
		if strings.Contains(name, ".codespace-tmp-") {
			t.Errorf("a temporary is left: %q", name)
		}
	}
	for name := range want {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		g, there := got[name]
		w, wanted := want[name]
		if g != w || there != wanted {
			t.Errorf("%q is %.300q (there: %v), want %.300q (%v)", name, g, there, w, wanted)
		}
	}
}

// untouched runs what must not change anything in a directory.
func untouched(t testing.TB, dir string, do func()) {
	t.Helper()
	before := seen(t, dir, true)
	do()
	same(t, seen(t, dir, true), before)
}
