package policy_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"codespace/policy"
)

const megabyte = 1 << 20

// TestHostileFilesCostLittle loads files of a megabyte that are made to cost
// more than their bytes: the decoder alone would take up to 40 seconds.
func TestHostileFilesCostLittle(t *testing.T) {
	files := map[string]string{
		"keys":           fill(func(i int) string { return fmt.Sprintf("k%d=1\n", i) }),
		"tables":         fill(func(i int) string { return fmt.Sprintf("[a.k%d]\n", i) }),
		"array tables":   fill(func(int) string { return "[[a]]\n" }),
		"inline table":   "a={" + fill(func(i int) string { return fmt.Sprintf("k%d=1,", i) }) + "z=1}",
		"array":          "a=[" + fill(func(int) string { return "1," }) + "]",
		"nested arrays":  "a=" + strings.Repeat("[", megabyte/2),
		"nested tables":  "a=" + strings.Repeat("{a=", megabyte/3-9),
		"dotted key":     strings.Repeat("a.", megabyte/2-9) + "a=1",
		"dotted table":   "[" + strings.Repeat("a.", megabyte/2-9) + "a]",
		"one long key":   strings.Repeat("a", megabyte-9) + "=1",
		"one long value": "a=\"" + strings.Repeat("a", megabyte-9) + "\"",
		"long table": "[" + strings.Repeat("a", megabyte/2) + "]\n" +
			strings.Join(strings.Fields(fill(func(i int) string { return fmt.Sprintf("k%d=1 ", i) })[:megabyte/8]), "\n"),
		"long workspace": "[workspaces." + strings.Repeat("a", megabyte/2) + "]\n" +
			strings.Join(strings.Fields(fill(func(i int) string { return fmt.Sprintf("k%d=1 ", i) })[:megabyte/8]), "\n"),
		"empty lines":  strings.Repeat("\n", megabyte),
		"many profile": minimal + fill(func(i int) string { return fmt.Sprintf("[profiles.p%d]\nextends=\"read-only\"\n", i) })[:200_000],
	}
	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			start := time.Now()
			text := h.refuse(text[:min(len(text), megabyte)])
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if len(text) > 64<<10 {
				t.Errorf("error of %d bytes", len(text))
			}
		})
	}
}

// fill repeats line up to a megabyte.
func fill(line func(int) string) string {
	var text strings.Builder
	for i := 0; text.Len() < megabyte-100; i++ {
		text.WriteString(line(i))
	}
	return text.String()
}

// TestLargeRegistryLoads shows that the ceilings leave room for real use.
func TestLargeRegistryLoads(t *testing.T) {
	h := newHost(t)
	workspaces := func(n int) string {
		text := "[state]\ndir = \"$DIR/state\"\n"
		for i := range n {
			h.must(os.MkdirAll(h.path(fmt.Sprintf("w/%d", i)), 0o755))
			text += fmt.Sprintf("[workspaces.w%d]\nroot = \"$DIR/w/%d\"\nprofile = \"read-only\"\nlimits.pids = 9\n", i, i)
		}
		return text
	}
	equal(t, len(h.load(workspaces(1024)).IDs()), 1024)
	says(t, h.refuse(workspaces(1025)), "1025 workspaces", "at most 1024")
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(minimal))
	f.Add([]byte("a = [[[{b = [1, {}]}]]]\n[[a]]\n[a.b]\nc.d = 1\r\n"))
	for _, c := range refusals {
		f.Add([]byte(strings.Replace(c.text, "▲", "", 1)))
	}
	dir := newHost(f).dir
	f.Fuzz(func(t *testing.T, text []byte) {
		reg, err := policy.Load(host{t, dir}.write(string(text)))
		if err != nil {
			if len(err.Error()) > 64<<10 || strings.ContainsAny(err.Error(), "\x00\x1b\r") {
				t.Errorf("error of %d bytes: %q", len(err.Error()), err)
			}
			return
		}
		for _, id := range reg.IDs() {
			w, _ := reg.Workspace(id)
			if w.Network != policy.NetworkRestricted || w.Approvals != policy.ApprovalsOff || len(w.Devices) > 0 {
				t.Errorf("accepted what nothing enforces: %+v", w)
			}
			if w.Root == "" || w.Limits.Memory == 0 || w.Limits.PIDs == 0 || w.Access == "" || w.Environment.Kind == "" {
				t.Errorf("accepted a workspace with holes: %+v", w)
			}
		}
	})
}
