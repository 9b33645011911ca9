package v4a_test

import (
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"codespace/openat2fs/v4a"
)

// tree is a workspace in memory; modes has what is no regular file. Directories
// are those above its files.
type tree struct {
	files map[string]string
	modes map[string]fs.FileMode
	above map[string]bool
	asked int
}

func files(namesAndContents ...string) *tree {
	t := &tree{files: map[string]string{}, modes: map[string]fs.FileMode{}}
	for i := 0; i < len(namesAndContents); i += 2 {
		t.files[namesAndContents[i]] = namesAndContents[i+1]
	}
	return t
}

func (t *tree) with(path string, mode fs.FileMode) *tree {
	t.modes[path] = mode
	return t
}

func (t *tree) Stat(path string) (fs.FileMode, error) {
	t.asked++
	if mode, ok := t.modes[path]; ok {
		return mode, nil
	}
	if _, ok := t.files[path]; ok {
		return 0o644, nil
	}
	if t.directories()[path] {
		return fs.ModeDir | 0o755, nil
	}
	return 0, fs.ErrNotExist
}

func (t *tree) directories() map[string]bool {
	if t.above != nil {
		return t.above
	}
	t.above = map[string]bool{}
	for name := range t.files {
		for i := range len(name) {
			if name[i] == '/' {
				t.above[name[:i]] = true
			}
		}
	}
	return t.above
}

func (t *tree) Read(path string, limit int) ([]byte, error) {
	content, ok := t.files[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(content[:min(len(content), limit+1)]), nil
}

// patched is the files after a patch, which is planned twice: a plan changes nothing.
func (t *tree) patched(patch string) (map[string]string, error) {
	parsed, err := v4a.Parse([]byte(patch))
	if err != nil {
		return nil, err
	}
	changes, err := v4a.Plan(parsed, t)
	if err != nil {
		return nil, err
	}
	after := maps.Clone(t.files)
	for _, c := range changes {
		switch c.Kind {
		case v4a.Move:
			delete(after, c.From)
		case v4a.Delete:
			delete(after, c.Path)
			continue
		}
		after[c.Path] = string(c.After)
	}
	return after, nil
}

func (t *tree) becomes(test *testing.T, patch string, want *tree) {
	test.Helper()
	got, err := t.patched(patch)
	if err != nil {
		test.Fatal(err)
	}
	if !maps.Equal(got, want.files) {
		test.Errorf("got %q\nwant %q", got, want.files)
	}
}

// fails wants a typed error with a code, a line and words in its text.
func fails(t *testing.T, err error, code v4a.Code, line int, words ...string) *v4a.Error {
	t.Helper()
	var e *v4a.Error
	if !errors.As(err, &e) {
		t.Fatalf("want %s, got %v", code, err)
	}
	if e.Code != code || e.Line != line {
		t.Errorf("want %s in line %d, got %v", code, line, e)
	}
	if e.What == "" || e.Next == "" || e.Expected == "" {
		t.Errorf("an error without what happened, what was expected or what to do: %#v", e)
	}
	for _, word := range words {
		if !strings.Contains(e.Error(), word) {
			t.Errorf("no %q in %q", word, e)
		}
	}
	return e
}

// refused is the error of a patch for a tree.
func (t *tree) refused(test *testing.T, patch string) error {
	test.Helper()
	after, err := t.patched(patch)
	if err == nil {
		test.Errorf("not refused: %q", after)
	}
	return err
}

// around puts the markers around hunks.
func around(hunks string) string { return "*** Begin Patch\n" + hunks + "*** End Patch\n" }

// update is a patch of the file f.
func update(chunks string) string { return around("*** Update File: f\n" + chunks) }

type edited struct{ name, before, chunks, after string }

func (e edited) run(t *testing.T) {
	files("f", e.before).becomes(t, update(e.chunks), files("f", e.after))
}
