package v4a_test

import (
	"io/fs"
	"strings"
	"testing"

	"codespace/openat2fs/v4a"
)

func TestEdits(t *testing.T) {
	for _, c := range []edited{
		{"one chunk", "a\nb\nc\n", "@@\n a\n-b\n+B\n c\n", "a\nB\nc\n"},
		{"many chunks", "a\nb\nc\nd\ne\nf\n", "@@\n a\n-b\n+B\n@@\n-d\n+D\n@@\n e\n f\n+g\n", "a\nB\nc\nD\ne\nf\ng\n"},
		{"first chunk without @@", "a\nb\n", " a\n-b\n+B\n", "a\nB\n"},
		{"empty context line", "a\n\nb\n", "@@\n a\n\n-b\n+B\n", "a\n\nB\n"},
		{"blank lines before the first chunk", "a\nb\n\n\n", "\n\n@@\n-a\n+A\n", "A\nb\n\n\n"},
		{"pure insertion without an anchor", "a\nb\n", "@@\n+c\n+d\n", "a\nb\nc\nd\n"},
		{"pure insertion without even @@", "a\n", "+b\n", "a\nb\n"},
		{"pure insertion with an anchor", "a\nb\nc\n", "@@ b\n+x\n", "a\nb\nx\nc\n"},
		{"pure insertion behind the last line by an anchor", "a\nb\n", "@@ b\n+c\n", "a\nb\nc\n"},
		{"pure insertion with an anchor and End of File", "a\nb\nc\n", "@@ a\n+d\n*** End of File\n", "a\nb\nc\nd\n"},
		{"pure insertion before a chunk higher up", "a\nb\n", "@@\n+c\n@@\n-a\n+A\n", "A\nb\nc\n"},
		{"two insertions at the end", "a\n", "@@\n+b\n@@\n+c\n", "a\nb\nc\n"},
		{"insertion into an empty file", "", "@@\n+a\n", "a\n"},
		{"anchor chooses the first match behind it", "x\n1\nf\n1\n1\n", "@@ f\n-1\n+2\n", "x\n1\nf\n2\n1\n"},
		{"anchor is matched by the trimmed pass", "\tdef f():\n\t\tp\n", "@@ def f():\n-\t\tp\n+\t\tq\n", "\tdef f():\n\t\tq\n"},
		{"stacked anchors", "class A\ndef f\n 1\nclass B\ndef f\n 1\n", "@@ class B\n@@ def f\n- 1\n+ 2\n", "class A\ndef f\n 1\nclass B\ndef f\n 2\n"},
		{"stacked anchors with a bare one", "class A\ndef f\n1\n", "@@ class A\n@@\n@@ def f\n-1\n+2\n", "class A\ndef f\n2\n"},
		{"End of File takes the last of several", "a\nb\na\n", "@@\n-a\n+x\n*** End of File\n", "a\nb\nx\n"},
		{"End of File, blank lines, another chunk", "a\nb\n", "@@\n-b\n+B\n*** End of File\n\n \n@@\n+c\n", "a\nB\nc\n"},
		{"deletion only", "a\nb\nc\n", "@@\n a\n-b\n c\n", "a\nc\n"},
		{"deletion of everything", "a\nb\n", "@@\n-a\n-b\n", ""},
		{"nothing but context", "a\nb\n", "@@\n a\n b\n", "a\nb\n"},
		{"trailing whitespace drift in the file", "a  \nb\t\n", "@@\n a\n-b\n+B\n", "a  \nB\n"},
		{"trailing whitespace drift in the patch", "a\nb\n", "@@\n a  \n-b \n+B\n", "a\nB\n"},
		{"indentation drift", "  a\n    b\n", "@@\n a\n-b\n+    B\n", "  a\n    B\n"},
		{"unicode punctuation", "it\u2019s \u201cone\u201d\u00a0\u2014 two\nx\n", "@@\n it's \"one\" - two\n-x\n+y\n", "it\u2019s \u201cone\u201d\u00a0\u2014 two\ny\n"},
		{"unicode punctuation in the patch", "a - b\n", "@@\n-a \u2013 b\n+c\n", "c\n"},
		{"exact wins over a looser match before it", "a \na\n", "@@\n-a\n+b\n", "a \nb\n"},
		{"empty last line that is not there", "a\nb\n", "@@\n-b\n+B\n\n", "a\nB\n"},
		{"empty last line before another chunk", "a\nb\nc\n", "@@\n-a\n+A\n\n@@\n-c\n+C\n", "A\nb\nC\n"},
		{"empty last line that is there", "a\n\nb\n", "@@\n-a\n+A\n\n", "A\n\nb\n"},
		{"empty line removed that is not there", "a\nb\n", "@@\n b\n-\n+c\n", "a\nb\nc\n"},
		{"empty line replaced by one, not there", "a\nb\n", "@@\n b\n-\n+\n", "a\nb\n"},
		{"empty line before new ones, not there", "a\nb\n", "@@\n b\n\n+c\n", "a\nb\n\nc\n"},
		{"nothing old but an empty line that is not there", "a\n", "@@\n+b\n\n", "a\nb\n"},
		{"file with only newlines", "\n\n\n", "@@\n+a\n", "\n\n\na\n"},
		{"file with only newlines, all replaced", "\n\n", "@@\n-\n-\n+a\n", "a\n"},
		{"an indented marker is context", " *** End Patch\n@@ x\nb\n", "@@\n  *** End Patch\n @@ x\n-b\n+c\n", " *** End Patch\n@@ x\nc\n"},
		{"markers as content", "a\n", "@@\n-a\n+*** End Patch\n+@@ b\n+++ c\n", "*** End Patch\n@@ b\n++ c\n"},
		{"an empty anchor is a bare one", "a\nb\n", "@@ \n-b\n+c\n", "a\nc\n"},
	} {
		t.Run(c.name, c.run)
	}
}

func TestBytesOfFiles(t *testing.T) {
	for _, c := range []edited{
		{"CRLF file", "a\r\nb\r\nc\r\n", "@@\n a\n-b\n+B\n+C\n c\n", "a\r\nB\r\nC\r\nc\r\n"},
		{"mixed endings: as the line before", "a\r\nb\nc\r\n", "@@\n a\n+x\n b\n+y\n c\n", "a\r\nx\r\nb\ny\nc\r\n"},
		{"mixed endings: a replaced line keeps its ending", "a\nb\r\nc\n", "@@\n-b\n+B\n", "a\nB\r\nc\n"},
		{"mixed endings: at the top as the line after", "a\r\nb\n", "@@\n+x\n a\n", "x\r\na\r\nb\n"},
		{"lone-CR file", "a\rb\rc\r", "@@\n a\n-b\n+B\n+C\n", "a\rB\rC\rc\r"},
		{"lone CR in a file of LF is text", "a\rb\nc\n", "@@\n a\rb\n-c\n+C\n", "a\rb\nC\n"},
		{"one CR of two is the ending's", "a\r\r\nb\n", "@@\n-a\r\r\n+c\n", "c\r\nb\n"},
		{"byte order mark", "\ufeffa\nb\n", "@@\n-a\n+A\n", "\ufeffA\nb\n"},
		{"insertion at the top behind a byte order mark", "\ufeffa\n", "@@\n+x\n a\n", "\ufeffx\na\n"},
		{"a byte order mark alone", "\ufeff", "@@\n+a\n", "\ufeffa\n"},
		{"not UTF-8 in lines that stay", "\xff\xfe \nb\n\x80\n", "@@\n-b\n+B\n", "\xff\xfe \nB\n\x80\n"},
		{"not UTF-8 in context and removed lines", "\xffa\nb\xfe\n", "@@\n \xffa\n-b\xfe\n+c\xfd\n", "\xffa\nc\xfd\n"},
		{"NUL", "a\x00b\nc\n", "@@\n a\x00b\n-c\n+d\n", "a\x00b\nd\n"},
		{"missing final newline, far from the edit", "a\nb\nc", "@@\n-a\n+A\n", "A\nb\nc\n"},
		{"missing final newline, in the last line", "a\nb", "@@\n-b\n+B\n", "a\nB\n"},
		{"missing final newline, appended to", "a\nb", "@@\n+c\n", "a\nb\nc\n"},
		{"missing final newline of CRLF", "a\r\nb", "@@\n b\n+c\n", "a\r\nb\r\nc\r\n"},
		{"missing final newline of CR", "a\rb", "@@\n b\n+c\n", "a\rb\rc\r"},
		{"missing final newline of the only line", "a", "@@\n a\n+b\n", "a\nb\n"},
		{"missing final newline, last line removed", "a\nb", "@@\n-b\n", "a\n"},
		{"patch of CRLF for a file of LF", "a\nb\n", "@@\r\n a\r\n-b\r\n+B\r\n", "a\nB\n"},
		{"patch of CRLF for a file of CRLF", "a\r\nb\r\n", "@@\r\n-b\r\n+B\r\n", "a\r\nB\r\n"},
	} {
		t.Run(c.name, c.run)
	}
}

// Nobody knows what a byte that is not UTF-8 means, so it is no white space.
func TestLinesThatAreNotUTF8MatchExactlyOnly(t *testing.T) {
	for _, before := range []string{"\xffa \n", " \xffa\n", "\xff\u2014\n"} {
		err := files("f", before).refused(t, update("@@\n-"+strings.TrimSpace(strings.ReplaceAll(before, "\u2014", "-"))+"\n+b\n"))
		fails(t, err, v4a.InvalidPatch, 3, "chunk 1")
	}
}

func TestFiles(t *testing.T) {
	const chunk = "@@\n-a\n+b\n"
	long := strings.Repeat("n", v4a.MaxNameBytes)
	for _, c := range []struct {
		name   string
		before *tree
		hunks  string
		after  *tree
	}{
		{"Add", files(), "*** Add File: a/b\n+x\n+\n+y\n", files("a/b", "x\n\ny\n")},
		{"Add of an empty file", files(), "*** Add File: a\n", files("a", "")},
		{"Add keeps CR before CR LF", files(), "*** Add File: a\n+x\r\r\n", files("a", "x\r\n")},
		{"Delete", files("a", "x", "b", "y"), "*** Delete File: a\n", files("b", "y")},
		{"Update", files("a", "a\n"), "*** Update File: a\n" + chunk, files("a", "b\n")},
		{"Move with edits to a new directory", files("a", "a\n"), "*** Update File: a\n*** Move to: d/e/f\n" + chunk, files("d/e/f", "b\n")},
		{"Move alone", files("a", "no newline"), "*** Update File: a\n*** Move to: b\n", files("b", "no newline")},
		{"Move alone, then a blank line", files("a", "x"), "*** Update File: a\n*** Move to: b\n\n*** Add File: c\n", files("b", "x", "c", "")},
		{"multi-file", files("a", "a\n", "b", "", "c", "a\n"),
			"*** Add File: n\n+n\n*** Delete File: b\n*** Update File: a\n" + chunk + "*** Update File: c\n*** Move to: m\n" + chunk,
			files("n", "n\n", "a", "b\n", "m", "b\n")},
		{"padded markers", files("a", "a\n", "b", ""), " \t*** Delete File: b \n  *** Add File: c  \n+c\n\t*** Update File: a\t\n@@  \n-a\n+b\n", files("c", "c\n", "a", "b\n")},
		{"names with spaces", files("a b", "a\n"), "*** Update File: a b\n*** Move to:  c  d \n" + chunk, files(" c  d", "b\n")},
		{"names with a leading dash", files("-rf", "a\n"), "*** Update File: -rf\n" + chunk, files("-rf", "b\n")},
		{"names of 255 bytes", files(long, "a\n"), "*** Update File: " + long + "\n" + chunk, files(long, "b\n")},
		{"names with dots", files("..a", "a\n"), "*** Update File: ./..a\n" + chunk + "*** Add File: ...\n*** Add File: d/./e//f..\n", files("..a", "b\n", "...", "", "d/e/f..", "")},
		{"names in quotes are not unquoted", files(), "*** Add File: \"a\\n\"\n", files("\"a\\n\"", "")},
		{"names beside each other", files("a", "a\n", "a-b", ""), "*** Update File: a\n" + chunk + "*** Delete File: a-b\n*** Add File: ab/c\n", files("a", "b\n", "ab/c", "")},
	} {
		t.Run(c.name, func(t *testing.T) { c.before.becomes(t, around(c.hunks), c.after) })
	}
}

func TestChangesSayWhatHappens(t *testing.T) {
	before := files("m", "x", "d", "y").with("m", 0o755|fs.ModeSetuid|fs.ModeSticky)
	patch, err := v4a.Parse([]byte(around("*** Update File: m\n*** Move to: n\n*** Delete File: d\n*** Add File: e\n+z\n")))
	if err != nil {
		t.Fatal(err)
	}
	changes, err := v4a.Plan(patch, before)
	if err != nil {
		t.Fatal(err)
	}
	const x = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
	move := changes[0]
	if move.Kind != v4a.Move || move.From != "m" || move.Path != "n" || move.BeforeVersion != x || move.AfterVersion != x || move.Mode != 0o755 {
		t.Errorf("move: %+v", move)
	}
	deletion := changes[1]
	if deletion.Kind != v4a.Delete || string(deletion.Before) != "y" || deletion.After != nil || deletion.AfterVersion != "" || deletion.BeforeVersion == "" {
		t.Errorf("delete: %+v", deletion)
	}
	addition := changes[2]
	if addition.Kind != v4a.Add || addition.Before != nil || addition.BeforeVersion != "" || string(addition.After) != "z\n" || addition.AfterVersion == "" {
		t.Errorf("add: %+v", addition)
	}
}

func TestHeredocWrapper(t *testing.T) {
	for _, opening := range []string{"<<EOF", "<<'EOF'", `<<"EOF"`} {
		for _, end := range []string{"\n", "\r\n"} {
			patch := "\n" + opening + end + around("*** Add File: a\n+x\n") + " \nEOF" + end
			files().becomes(t, patch, files("a", "x\n"))
		}
	}
}
