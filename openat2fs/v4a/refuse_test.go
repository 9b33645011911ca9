package v4a_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"codespace/openat2fs/v4a"
)

func TestPatchesThatAreNone(t *testing.T) {
	for _, c := range []struct {
		name, patch string
		line        int
		word        string
	}{
		{"nothing", "", 1, "Begin Patch"},
		{"blank lines", "\n \n", 3, "Begin Patch"},
		{"no begin", "*** Add File: a\n*** End Patch", 1, "Begin Patch"},
		{"no end", "\n\n*** Begin Patch\n*** Add File: a\n+b", 5, "End Patch"},
		{"begin alone", "*** Begin Patch", 1, "End Patch"},
		{"zero hunks", around(""), 2, "changes nothing"},
		{"text after End Patch", around("*** Add File: a\n") + "\n \nmore\n", 6, `goes on with "more"`},
		{"a second patch", around("*** Add File: a\n") + around("*** Add File: b\n"), 4, "one begin and one end marker"},
		{"a line before the first header", around("x\n"), 2, "header"},
		{"a blank line before the first header", around("\n*** Add File: a\n"), 2, "header"},
		{"a line behind a Delete", around("*** Delete File: a\n-x\n"), 3, "header"},
		{"a line without + in an Add", around("*** Add File: a\n+x\n\n+y\n"), 4, `"+"`},
		{"an unknown header", around("*** Rename File: a\n"), 2, "Rename"},
		{"a header in small letters", around("*** add file: a\n"), 2, "Add File"},
		{"a header without a blank", around("*** Add File:a\n"), 2, "Add File"},
		{"an Environment ID", around("*** Environment ID: x\n*** Add File: a\n"), 2, "can select nothing"},
		{"an Environment ID later", around("*** Update File: a\n+x\n*** Environment ID: x\n"), 4, "can select nothing"},
		{"an update of nothing", around("*** Update File: a\n*** Add File: b\n"), 2, "changes nothing"},
		{"an update of blank lines", update("\n\n"), 2, "changes nothing"},
		{"a chunk of anchors", update("@@ a\n@@ b\n"), 3, "no lines"},
		{"a chunk of nothing before another file", update("+a\n@@\n*** Add File: b\n"), 4, "no lines"},
		{"an anchor without a blank", update("@@foo\n+a\n"), 3, `"@@foo"`},
		{"an anchor behind a tab", update("@@\tfoo\n+a\n"), 3, "blank"},
		{"a line without a sign", update("@@\n a\nb\n"), 5, `found "b"`},
		{"a tab for a sign", update("@@\n\ta\n"), 4, "sign"},
		{"an unknown marker in an update", update("@@\n a\n*** Rename to: b\n"), 5, "Rename"},
		{"End of File without lines", update("@@\n*** End of File\n"), 4, "End of File"},
		{"End of File without a chunk", update("*** End of File\n"), 3, "End of File"},
		{"End of File twice", update("+a\n*** End of File\n*** End of File\n"), 5, "End of File"},
		{"lines behind End of File", update("+a\n*** End of File\n+b\n"), 5, "@@"},
		{"a Move behind a chunk", update("+a\n*** Move to: b\n"), 4, "Move to"},
		{"two Moves", update("*** Move to: b\n*** Move to: c\n"), 4, "Move to"},
		{"an open heredoc", "<<EOF\n" + around("*** Add File: a\n"), 4, "EOF"},
		{"a heredoc of another name", "<<END\n" + around("*** Add File: a\n") + "END", 1, "Begin Patch"},
		{"an empty heredoc", "<<EOF\nEOF", 2, "Begin Patch"},
		{"a heredoc alone", "<<EOF", 1, "EOF"},
		{"a heredoc marker behind the patch", around("*** Add File: a\n") + "EOF", 4, "EOF"},
		{"a directory's path", around("*** Add File: a/\n"), 2, "directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fails(t, files().refused(t, c.patch), v4a.InvalidPatch, c.line, c.word)
		})
	}
}

func TestPathsThatLeaveTheWorkspace(t *testing.T) {
	for _, path := range []string{"", " ", "/", "/etc/passwd", "..", "../a", "a/../b", "a/..", "./..", ".", "./", "a\x00b", "//a"} {
		for _, header := range []string{"*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Update File: a\n*** Move to: "} {
			line := 2 + strings.Count(header, "\n")
			fails(t, files("a", "").refused(t, around(header+path+"\n")), v4a.PathEscape, line, "path")
		}
	}
}

func TestLimitsOfAPatch(t *testing.T) {
	deep := strings.Repeat("d/", v4a.MaxPathDepth-1)
	name := strings.Repeat("n", v4a.MaxNameBytes)
	longest := strings.Repeat(name+"/", 15) + name
	files().becomes(t, around("*** Add File: "+deep+"f\n*** Add File: "+longest+"\n"), files(deep+"f", "", longest, ""))
	for _, c := range []struct {
		name, patch string
		line        int
	}{
		{"bytes", around("*** Add File: a\n+" + strings.Repeat("x", v4a.MaxPatchBytes) + "\n"), 1},
		{"lines", around("*** Add File: a\n" + strings.Repeat("+\n", v4a.MaxPatchLines)), 1},
		{"chunks", update(strings.Repeat("@@\n+\n", v4a.MaxChunks+1)), 2*v4a.MaxChunks + 3},
		{"files", around(each(v4a.MaxFiles+1, "*** Add File: %d\n")), v4a.MaxFiles + 2},
		{"files by moves", around(each(v4a.MaxFiles/2+1, "*** Update File: %d\n*** Move to: m%[1]d\n")), v4a.MaxFiles + 2},
		{"name", around("*** Add File: " + name + "n\n"), 2},
		{"path", around("*** Add File: " + longest + "/n\n"), 2},
		{"depth", around("*** Add File: " + deep + "d/f\n"), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			fails(t, files().refused(t, c.patch), v4a.InvalidPatch, c.line, "at most")
		})
	}
}

func each(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestSamePathTwice(t *testing.T) {
	for _, c := range []struct {
		hunks string
		line  int
	}{
		{"*** Add File: a\n*** Add File: a\n", 3},
		{"*** Delete File: a\n*** Add File: b\n*** Add File: ./a\n", 4},
		{"*** Update File: a\n+x\n*** Update File: a\n+y\n", 4},
		{"*** Update File: b\n*** Move to: a\n*** Delete File: a\n", 4},
		{"*** Update File: a\n*** Move to: a\n", 3},
		{"*** Update File: b\n*** Move to: a\n*** Update File: c\n*** Move to: a\n", 5},
	} {
		before := files()
		fails(t, before.refused(t, around(c.hunks)), v4a.InvalidPatch, c.line, `"a"`)
		if before.asked > 0 {
			t.Errorf("%q: the files were looked at first", c.hunks)
		}
	}
}

func TestParentAndChildPaths(t *testing.T) {
	for _, hunks := range []string{
		"*** Add File: a\n*** Add File: a-b\n*** Add File: a/b\n",
		"*** Add File: a/b/c/d\n*** Add File: a.b\n*** Delete File: a/b\n",
		"*** Delete File: b\n*** Add File: c\n*** Add File: b/c\n",
	} {
		before := files()
		fails(t, before.refused(t, around(hunks)), v4a.InvalidPatch, 4, "below")
		if before.asked > 0 {
			t.Errorf("%q: the files were looked at first", hunks)
		}
	}
}

func TestFilesThatDoNotFit(t *testing.T) {
	const change = "*** Update File: a/b\n*** Move to: c/d\n"
	special := []fs.FileMode{fs.ModeNamedPipe, fs.ModeSocket, fs.ModeDevice, fs.ModeIrregular}
	for _, c := range []struct {
		name   string
		before *tree
		hunks  string
		code   v4a.Code
		line   int
		path   string
	}{
		{"missing file to update", files(), "*** Update File: a\n+x\n", v4a.FileNotFound, 2, "a"},
		{"missing file to delete", files(), "*** Delete File: a\n", v4a.FileNotFound, 2, "a"},
		{"missing file to move", files(), change, v4a.FileNotFound, 2, "a/b"},
		{"existing Add target", files("a", ""), "*** Add File: a\n", v4a.AddFileExists, 2, "a"},
		{"directory as Add target", files("a/b", ""), "*** Add File: a\n", v4a.AddFileExists, 2, "a"},
		{"existing Move target", files("a/b", "", "c/d", ""), change, v4a.MoveDestinationExists, 3, "c/d"},
		{"directory as Move target", files("a/b", "", "c/d/e", ""), change, v4a.MoveDestinationExists, 3, "c/d"},
		{"directory as file to update", files("a/b/c", ""), change, v4a.SpecialFileRejected, 2, "a/b"},
		{"directory as file to delete", files("a/b", ""), "*** Delete File: a\n", v4a.SpecialFileRejected, 2, "a"},
		{"file as directory of an Add", files("a", ""), "*** Add File: a/b\n", v4a.PathNotDirectory, 2, "a"},
		{"file as directory of an Update", files("a", ""), change, v4a.PathNotDirectory, 2, "a"},
		{"file as directory of a Move", files("a/b", "", "c", ""), change, v4a.PathNotDirectory, 3, "c"},
		{"link as leaf", files("a/b", "").with("a/b", fs.ModeSymlink), change, v4a.SymlinkRejected, 2, "a/b"},
		{"link as ancestor", files("a/b", "").with("a", fs.ModeSymlink), change, v4a.SymlinkRejected, 2, "a"},
		{"link as Add target", files("a", "").with("a", fs.ModeSymlink), "*** Add File: a\n", v4a.SymlinkRejected, 2, "a"},
		{"link as ancestor of a Move target", files("a/b", "").with("c", fs.ModeSymlink), change, v4a.SymlinkRejected, 3, "c"},
		{"FIFO", files("a/b", "").with("a/b", special[0]), change, v4a.SpecialFileRejected, 2, "a/b"},
		{"socket", files("a/b", "").with("a/b", special[1]), change, v4a.SpecialFileRejected, 2, "a/b"},
		{"device as ancestor", files("a/b", "").with("a", special[2]), change, v4a.SpecialFileRejected, 2, "a"},
		{"irregular file as Add target", files("a", "").with("a", special[3]), "*** Add File: a\n", v4a.SpecialFileRejected, 2, "a"},
		{"file that went away", files().with("a", 0), "*** Delete File: a\n", v4a.FileNotFound, 2, "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if e := fails(t, c.before.refused(t, around(c.hunks)), c.code, c.line); e.Path != c.path {
				t.Errorf("path %q, want %q", e.Path, c.path)
			}
		})
	}
}

// broken is a source whose calls fail.
type broken struct{ stat, read error }

func (b broken) Stat(string) (fs.FileMode, error) { return 0, b.stat }
func (b broken) Read(string, int) ([]byte, error) { return nil, b.read }

func TestErrorsOfASourceAreReturnedAsTheyAre(t *testing.T) {
	mine := errors.New("cannot read")
	for _, hunks := range []string{"*** Add File: a\n", "*** Add File: a/b\n", "*** Delete File: a\n", "*** Update File: a\n*** Move to: b\n"} {
		patch, err := v4a.Parse([]byte(around(hunks)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v4a.Plan(patch, broken{stat: mine}); err != mine {
			t.Errorf("%q: got %v", hunks, err)
		}
	}
	patch, _ := v4a.Parse([]byte(around("*** Delete File: a\n")))
	if _, err := v4a.Plan(patch, broken{read: mine}); err != mine {
		t.Errorf("got %v", err)
	}
}

func TestDirectoriesAreAskedForOnce(t *testing.T) {
	before := files("d/e/f", "")
	before.becomes(t, around(each(100, "*** Add File: d/e/%d\n*** Add File: n/m/%[1]d\n")), func() *tree {
		after := files("d/e/f", "")
		for i := range 100 {
			after.files[fmt.Sprintf("d/e/%d", i)] = ""
			after.files[fmt.Sprintf("n/m/%d", i)] = ""
		}
		return after
	}())
	if before.asked > 103 {
		t.Errorf("asked %d times for 100 files in 2 directories there and 1 that is not", before.asked)
	}
}
