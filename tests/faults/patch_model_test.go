package faults_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tree is what is in a workspace: by path, "dir" or mode and content.
type tree map[string]string

func file(mode fs.FileMode, content string) string { return fmt.Sprintf("%04o %s", mode, content) }

// thePatch adds (in a new directory), updates, deletes, moves with an edit, and
// updates a program.
const thePatch = `*** Begin Patch
*** Add File: made/deep/new.txt
+new
*** Update File: lib/update.txt
@@
 one
-two
+zwei
 three
*** Delete File: gone.txt
*** Update File: src/move.txt
*** Move to: dst/moved.txt
@@
 a
-b
+B
*** Update File: tool.sh
@@
-echo one
+echo two
*** End Patch
`

// before and after are the workspace without and with thePatch.
var (
	before = tree{
		"lib": "dir", "lib/update.txt": file(0o644, "one\ntwo\nthree\n"), "gone.txt": file(0o600, "gone\n"),
		"src": "dir", "src/move.txt": file(0o640, "a\nb\n"), "dst": "dir", "dst/other.txt": file(0o644, "other\n"),
		"tool.sh": file(0o755, "#!/bin/sh\necho one\n"),
	}
	after = tree{
		"lib": "dir", "lib/update.txt": file(0o644, "one\nzwei\nthree\n"), "src": "dir",
		"dst": "dir", "dst/moved.txt": file(0o640, "a\nB\n"), "dst/other.txt": file(0o644, "other\n"),
		"tool.sh": file(0o755, "#!/bin/sh\necho two\n"), "made": "dir", "made/deep": "dir", "made/deep/new.txt": file(0o644, "new\n"),
	}
)

// plant makes the workspace as it is before.
func (p patchPlace) plant(t testing.TB) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		var mode fs.FileMode
		var err error
		if before[name] == "dir" {
			err = os.Mkdir(p.file(name), 0o755)
		} else {
			text, content, _ := strings.Cut(before[name], " ")
			fmt.Sscanf(text, "%o", &mode)
			if err = os.WriteFile(p.file(name), []byte(content), mode); err == nil {
				err = os.Chmod(p.file(name), mode)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		give(t, p.file(name))
	}
	give(t, p.workspace)
}

// give gives a file to the owner of the workspace.
func give(t testing.TB, name string) {
	t.Helper()
	if os.Geteuid() != ownerID() {
		if err := os.Chown(name, ownerID(), ownerID()); err != nil {
			t.Fatal(err)
		}
	}
}

// ownerID is who the workspace belongs to: somebody else, where that can be.
func ownerID() int {
	if os.Geteuid() == 0 {
		return 23456
	}
	return os.Geteuid()
}

// look reads the whole workspace, temporaries included.
func (p patchPlace) look(t testing.TB) tree {
	t.Helper()
	found := tree{}
	err := filepath.WalkDir(p.workspace, func(name string, e fs.DirEntry, err error) error {
		path, _ := filepath.Rel(p.workspace, name)
		switch {
		case err != nil || path == ".":
			return err
		case e.IsDir() && e.Name() == "lost+found":
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if uid := int(info.Sys().(*syscall.Stat_t).Uid); uid != ownerID() {
			t.Errorf("%s belongs to %d", path, uid)
		}
		if e.IsDir() {
			found[path] = "dir"
			return nil
		}
		content, err := os.ReadFile(name)
		found[path] = file(info.Mode(), string(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The words for how a patch ended, as it is answered and as the disk shows.
const (
	applied    = "applied"
	rolledBack = "failed_rolled_back"
	notKnown   = "unknown"
	notFound   = "OPERATION_NOT_FOUND"
	noLedger   = "LEDGER_UNAVAILABLE"
)

// said is what an answer of apply_patch or operation_status says of the end.
func said(r result) string {
	details, _ := r.fields["details"].(map[string]any)
	status, _ := details["status"].(string)
	switch {
	case r.gone:
		return "no answer"
	case !r.failed:
		return r.text("status")
	case status != "":
		return status
	}
	return r.code()
}

// wantDisk wants the workspace to be what was said of thePatch, and nothing besides.
func (p patchPlace) wantDisk(t testing.TB, word string) {
	t.Helper()
	p.wantTree(t, word, after)
}

// wantTree is wantDisk of a patch that makes another tree of the one before.
func (p patchPlace) wantTree(t testing.TB, word string, patched tree) {
	t.Helper()
	want := before
	switch word {
	case applied:
		want = patched
	case rolledBack, notFound, noLedger:
	default:
		t.Errorf("the patch is said to be %s", word)
		return
	}
	if found := p.look(t); !maps.Equal(found, want) {
		t.Errorf("%s, and the disk differs:\n%s", word, differences(found, want))
	}
}

func differences(found, want tree) string {
	var out strings.Builder
	for name, is := range found {
		if want[name] != is {
			fmt.Fprintf(&out, "%s is %q, want %q\n", name, is, want[name])
		}
	}
	for name, is := range want {
		if found[name] == "" {
			fmt.Fprintf(&out, "%s is missing, want %q\n", name, is)
		}
	}
	return out.String()
}

// sendPatch calls apply_patch without waiting for the answer.
func (s *session) sendPatch(text, key string) <-chan result {
	return s.send("apply_patch", map[string]any{"workspace_id": s.workspace, "patch": text, "operation_key": key})
}

func (s *session) patch(t testing.TB, text, key string) result {
	t.Helper()
	return s.await(t, s.sendPatch(text, key))
}

func (s *session) operation(t testing.TB, key string) result {
	t.Helper()
	return s.call(t, "operation_status", map[string]any{"workspace_id": s.workspace, "operation_key": key})
}

// settleLimit is within what time the end of a patch is known once nobody works on it.
const settleLimit = 10 * time.Second

// settled is what operation_status says once it knows the end.
func (s *session) settled(t testing.TB, key string) string {
	t.Helper()
	var r result
	within(settleLimit, func() bool { r = s.operation(t, key); return said(r) != notKnown })
	if finished := r.text("finished_at") != ""; !r.failed && finished != (said(r) != notKnown) {
		t.Errorf("operation_status: %v", r)
	}
	return said(r)
}

// another is a patch that does not depend on what became of others.
func another(name string) string {
	return "*** Begin Patch\n*** Add File: " + name + "\n+another\n*** End Patch\n"
}

// wantNextPatch wants the workspace to be free for another patch.
func (p patchPlace) wantNextPatch(t testing.TB, s *session) {
	t.Helper()
	var r result
	within(promised, func() bool { r = s.patch(t, another("another"), mark()); return r.fields["retryable"] != true })
	if said(r) != applied {
		t.Errorf("the next patch: %v; stderr: %s", r, &s.stderr)
		return
	}
	if err := os.Remove(p.file("another")); err != nil {
		t.Error(err)
	}
}

// wantSettled wants an end of the patch that is true, and a free workspace.
func (p patchPlace) wantSettled(t testing.TB, s *session, key string) string {
	t.Helper()
	word := s.settled(t, key)
	p.wantDisk(t, word)
	p.wantNextPatch(t, s)
	return word
}

// tally counts how the cases of a test ended.
type tally struct {
	cases, good int
	words       map[string]int
}

// run runs one case, which says how the patch ended.
func (c *tally) run(t *testing.T, name string, do func(t *testing.T) string) {
	t.Helper()
	if c.words == nil {
		c.words = map[string]int{}
	}
	c.cases++
	if t.Run(name, func(t *testing.T) { c.words[do(t)]++ }) {
		c.good++
	}
}

// report prints the sum and wants each of the words to have been seen.
func (c *tally) report(t *testing.T, words ...string) {
	t.Helper()
	t.Logf("%d of %d: %v", c.good, c.cases, c.words)
	for _, w := range words {
		if c.words[w] == 0 {
			t.Errorf("control: no case ended as %s", w)
		}
	}
}
