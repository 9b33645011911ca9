package v4a_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"codespace/openat2fs/v4a"
)

// load is a patch and files that a quadratic way would never end on.
type load struct {
	name string
	make func(n int) (*tree, string)
	code v4a.Code // "" for success
}

// numbered is n lines that differ.
func numbered(n int) string { return each(n, "line %d\n") }

var loads = []load{
	{"a chunk for every second line", func(n int) (*tree, string) {
		var b strings.Builder
		for i := 0; i < n; i += 2 {
			fmt.Fprintf(&b, "@@\n line %d\n-line %d\n+x\n", i, i+1)
		}
		return files("f", numbered(n)), update(b.String())
	}, ""},
	{"an anchored chunk for every line of a file of equal lines", func(n int) (*tree, string) {
		return files("f", strings.Repeat("a\n", n)), update(strings.Repeat("@@ a\n-a\n+b\n", n/2))
	}, ""},
	{"chunks that only the last pass finds", func(n int) (*tree, string) {
		return files("f", each(n, "a \u2014 %d\n")), update(each(n/2, "@@\n-a - %d\n+b\n"))
	}, ""},
	{"chunks that nearly fit everywhere", func(n int) (*tree, string) {
		block := strings.Repeat("a\n", 30)
		old := strings.Repeat(" a\n", 30)
		return files("f", each(n/31, block+"b %d\n")), update(each(n/31, "@@\n"+old+"-b %d \n+c\n"))
	}, ""},
	{"a chunk of every length in a file of equal lines", func(n int) (*tree, string) {
		var b strings.Builder
		for length, used := 1, 0; used+length+1 < n; length++ {
			b.WriteString("@@ a\n" + strings.Repeat("-a\n", length))
			used += length + 1
		}
		return files("f", strings.Repeat("a\n", n)), update(b.String())
	}, ""},
	{"chunks out of two lines", func(n int) (*tree, string) {
		r := rand.New(rand.NewPCG(1, 1))
		var file, patch strings.Builder
		for range n / 40 {
			patch.WriteString("@@\n")
			for range 40 {
				line := []string{"0", "1"}[r.IntN(2)]
				file.WriteString(line + "\n")
				patch.WriteString("-" + line + "\n")
			}
		}
		return files("f", file.String()), update(patch.String())
	}, ""},
	{"an anchor for every line", func(n int) (*tree, string) {
		return files("f", numbered(n)), update(each(n, "@@ line %d\n") + "+x\n")
	}, ""},
	{"one chunk as long as the file, not there", func(n int) (*tree, string) {
		return files("f", strings.Repeat("a\n", n)), update("@@\n" + strings.Repeat(" a\n", n-1) + "-b\n")
	}, v4a.InvalidPatch},
	{"half a file of equal lines", func(n int) (*tree, string) {
		return files("f", strings.Repeat("a\n", n)), update("@@\n" + strings.Repeat("-a\n", n/2))
	}, v4a.Ambiguous},
	{"a file of newlines", func(n int) (*tree, string) {
		return files("f", strings.Repeat("\n", n)), update("@@\n" + strings.Repeat("-\n", n-1) + "-b\n")
	}, v4a.InvalidPatch},
	{"an anchor that is nowhere", func(n int) (*tree, string) {
		return files("f", strings.Repeat(strings.Repeat("a", 30)+"\n", n)), update("@@ " + strings.Repeat("a", 20) + "b\n+x\n")
	}, v4a.InvalidPatch},
}

// steps plans a load and counts.
func (l load) steps(t *testing.T, n int) int64 {
	t.Helper()
	before, text := l.make(n)
	patch, err := v4a.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	_, steps, err := v4a.Counted(patch, before)
	if l.code != "" {
		if e, ok := err.(*v4a.Error); !ok || e.Code != l.code {
			t.Fatalf("want %s, got %v", l.code, err)
		}
		return steps
	}
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// TestTimeIsNearLinear counts steps, which are the same on every machine: at most
// so many for a line of file and patch, times the height of a tree over them, and
// about twice as many for twice as much.
func TestTimeIsNearLinear(t *testing.T) {
	const n = 100_000
	for _, l := range loads {
		t.Run(l.name, func(t *testing.T) {
			before, text := l.make(n)
			size := strings.Count(before.files["f"], "\n") + strings.Count(text, "\n")
			half, whole := l.steps(t, n/2), l.steps(t, n)
			t.Logf("%d lines, %d steps, %.1f a line, growth %.2f", size, whole, float64(whole)/float64(size), float64(whole)/float64(half))
			if limit := int64(6 * size * bits.Len(uint(size))); whole > limit {
				t.Errorf("%d steps, more than %d", whole, limit)
			}
			if whole > half*5/2 {
				t.Errorf("%d steps for half, %d for all", half, whole)
			}
		})
	}
}

func TestFileOf100000Lines(t *testing.T) {
	before, want := numbered(100_000), strings.Replace(numbered(100_000), "line 99998\n", "x\n", 1)
	files("f", before).becomes(t, update("@@ line 4\n@@\n line 99997\n-line 99998\n+x\n"), files("f", want))
}

func TestLineOf64MiB(t *testing.T) {
	line := strings.Repeat("\u2014 long ", 8<<20)[:64<<20]
	const chunks = 1000
	text := update(each(chunks, "@@\n-line %d \n+x\n"))
	patch, err := v4a.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	before := line + "\n" + numbered(chunks)
	changes, steps, err := v4a.Counted(patch, files("f", before))
	if err != nil {
		t.Fatal(err)
	}
	if string(changes[0].After) != line+"\n"+strings.Repeat("x\n", chunks) {
		t.Error("the long line is not what it was")
	}
	if limit := int64(4*len(before)/64 + 100*chunks); steps > limit {
		t.Errorf("%d steps, more than %d", steps, limit)
	}
	// Looked for in vain, it is shown in part.
	err = files("f", before).refused(t, update("@@ "+line[:8<<20]+"\n-y\n"))
	if fails(t, err, v4a.InvalidPatch, 3); len(err.Error()) > 4000 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

func TestHundredThousandHunks(t *testing.T) {
	const n = 100_000
	before, want := files(), files()
	for i := range n / 4 {
		before.files[fmt.Sprintf("u%d", i)] = "a\n"
		before.files[fmt.Sprintf("d%d", i)] = "a\n"
		before.files[fmt.Sprintf("m%d", i)] = "a\n"
		want.files[fmt.Sprintf("u%d", i)] = "b\n"
		want.files[fmt.Sprintf("n%d", i)] = "a\n"
		want.files[fmt.Sprintf("a/%d", i)] = "x\n"
	}
	patch := around(each(n/4, "*** Update File: u%d\n@@\n-a\n+b\n*** Delete File: d%[1]d\n*** Update File: m%[1]d\n*** Move to: n%[1]d\n*** Add File: a/%[1]d\n+x\n"))
	before.becomes(t, patch, want)
}

func TestFilesThatAreTooLarge(t *testing.T) {
	for name, before := range map[string]string{
		"bytes": strings.Repeat("x", v4a.MaxFileBytes+1),
		"lines": strings.Repeat("\n", v4a.MaxFileLines+1),
	} {
		t.Run(name, func(t *testing.T) {
			fails(t, files("f", before).refused(t, update("@@\n+x\n")), v4a.FileTooLarge, 2, `"f"`)
		})
	}
	huge := strings.Repeat("x", v4a.MaxFileBytes)
	t.Run("all files", func(t *testing.T) {
		err := files("a", huge, "b", huge, "c", "x").refused(t, around("*** Delete File: a\n*** Delete File: b\n*** Delete File: c\n"))
		fails(t, err, v4a.FileTooLarge, 4, `"c"`)
	})
	t.Run("result", func(t *testing.T) {
		fails(t, files("f", huge).refused(t, update("@@\n+x\n")), v4a.FileTooLarge, 2, "would have")
	})
}

// allocated is how many bytes a call takes in all, whether or not it gives them back.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestMemoryIsBounded takes the worst that the limits permit of each kind. Parsing
// keeps no copy of the text.
func TestMemoryIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		patch string
		most  uint64
	}{
		"lines":  {around("*** Add File: a\n" + strings.Repeat("+\n", v4a.MaxPatchLines-3)), 32 << 20},
		"bytes":  {around("*** Add File: a\n+" + strings.Repeat("x", v4a.MaxPatchBytes-100) + "\n"), 1 << 20},
		"chunks": {update(strings.Repeat("@@\n+\n", v4a.MaxChunks)), 160 << 20},
		"files":  {around(each(v4a.MaxFiles, "*** Add File: %d\n")), 160 << 20},
	} {
		text := []byte(c.patch)
		var err error
		if got := allocated(func() { _, err = v4a.Parse(text) }); got > c.most || err != nil {
			t.Errorf("%s: %d bytes allocated, more than %d; %v", name, got, c.most, err)
		} else {
			t.Logf("%s: %d bytes allocated for a patch of %d", name, got, len(text))
		}
	}
	patch, err := v4a.Parse([]byte(update(each(v4a.MaxChunks, "@@\n-%d\n"))))
	if err != nil {
		t.Fatal(err)
	}
	before := files("f", each(v4a.MaxFileLines, "%d \n"))
	if got := allocated(func() { _, err = v4a.Plan(patch, before) }); got > 1<<30 || err != nil {
		t.Errorf("%d bytes allocated for a plan: %v", got, err)
	} else {
		t.Logf("%d bytes allocated for a plan on %d bytes", got, len(before.files["f"]))
	}
}
