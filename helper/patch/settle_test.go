package patch

import (
	"os"
	"strings"
	"testing"

	"codespace/openat2fs"
	"codespace/runner/patching"
)

// Contents of the places of an edit: before and after it, and of somebody else. A link
// is somebody else's, too.
const (
	former = "former"
	fresh  = "fresh"
	other  = "other"
	third  = "third"
	link   = "\x00link"
	none   = "\x00none"
)

const temporary = ".codespace-tmp-ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// found is what an interrupted edit has left, and what is to become of it.
type left struct {
	target, temp string // as they are
	status       patching.Status
	then         [2]string // target and temporary
	fact         string    // how it begins, "" for none
}

const (
	changed = "somebody else has changed it"
	lost    = "what stood there is gone"
)

var interruptedUpdates = []left{
	{former, none, patching.RolledBack, [2]string{former, none}, ""},     // not begun
	{former, fresh, patching.RolledBack, [2]string{former, none}, ""},    // written
	{former, "fre", patching.RolledBack, [2]string{former, none}, ""},    // written in part
	{former, link, patching.Partial, [2]string{former, link}, changed},   // another's was exchanged, and another has put back what stood there
	{former, former, patching.RolledBack, [2]string{former, none}, ""},   // the same, of nobody
	{fresh, former, patching.Applied, [2]string{fresh, none}, ""},        // done
	{fresh, none, patching.Applied, [2]string{fresh, none}, ""},          // and cleaned
	{fresh, other, patching.RolledBack, [2]string{other, none}, ""},      // what was exchanged was another's
	{fresh, link, patching.RolledBack, [2]string{link, none}, ""},        // likewise
	{fresh, fresh, patching.RolledBack, [2]string{fresh, none}, ""},      // not done, and another has written the same
	{other, none, patching.Unknown, [2]string{other, none}, changed},     // not begun, or done and changed again
	{none, none, patching.Unknown, [2]string{none, none}, changed},       // likewise
	{link, none, patching.Unknown, [2]string{link, none}, changed},       // likewise
	{other, fresh, patching.RolledBack, [2]string{other, none}, ""},      // written, and another has changed the target
	{none, fresh, patching.RolledBack, [2]string{none, none}, ""},        // likewise
	{link, fresh, patching.RolledBack, [2]string{link, none}, ""},        // likewise
	{other, former, patching.Partial, [2]string{other, former}, changed}, // done and changed again: what stood there is kept
	{link, former, patching.Partial, [2]string{link, former}, changed},   // likewise
	{none, former, patching.RolledBack, [2]string{former, none}, ""},     // done, and another has removed it
	{other, third, patching.Partial, [2]string{other, third}, changed},   // whose is what, nobody knows
	{none, other, patching.Partial, [2]string{none, other}, changed},     // likewise
}

var interruptedAdds = []left{
	{none, none, patching.RolledBack, [2]string{none, none}, ""},
	{none, fresh, patching.RolledBack, [2]string{none, none}, ""},
	{none, "fre", patching.RolledBack, [2]string{none, none}, ""},
	{fresh, none, patching.Applied, [2]string{fresh, none}, ""},
	{fresh, fresh, patching.RolledBack, [2]string{fresh, none}, ""}, // another has made the same
	{other, fresh, patching.RolledBack, [2]string{other, none}, ""}, // another was faster
	{link, fresh, patching.RolledBack, [2]string{link, none}, ""},
	{other, none, patching.Unknown, [2]string{other, none}, changed},
	{none, link, patching.Partial, [2]string{none, link}, changed}, // no patch puts one there
	{link, none, patching.Unknown, [2]string{link, none}, changed},
}

var interruptedDeletes = []left{
	{former, none, patching.RolledBack, [2]string{former, none}, ""},
	{none, former, patching.Applied, [2]string{none, none}, ""},
	{none, none, patching.Applied, [2]string{none, none}, ""},
	{none, other, patching.RolledBack, [2]string{other, none}, ""}, // what was taken away was another's
	{none, link, patching.RolledBack, [2]string{link, none}, ""},
	{former, former, patching.RolledBack, [2]string{former, none}, ""},   // another has made the same
	{other, none, patching.Unknown, [2]string{other, none}, changed},     // not begun, or done and made anew
	{other, former, patching.Partial, [2]string{other, former}, changed}, // done and made anew
	{other, third, patching.Partial, [2]string{other, third}, changed},   // likewise, and another's was taken away
	{former, other, patching.Partial, [2]string{former, other}, changed}, // another's was taken away, which no plan names
}

func version(content string) string {
	if content == none {
		return openat2fs.Absent
	}
	return openat2fs.VersionOf([]byte(content))
}

// TestSettleOneEdit has every state that one edit may be found in.
func TestSettleOneEdit(t *testing.T) {
	for kind, c := range map[string]struct {
		before, after string
		states        []left
	}{
		"update": {former, fresh, interruptedUpdates}, "add": {none, fresh, interruptedAdds}, "delete": {former, none, interruptedDeletes},
	} {
		seen := map[[2]string]bool{}
		for _, l := range c.states {
			if at := [2]string{l.target, l.temp}; seen[at] {
				t.Errorf("%s: %q twice", kind, at)
			} else {
				seen[at] = true
			}
			e := patching.Edit{Path: "d/f", Temp: temporary, Before: version(c.before), After: version(c.after)}
			t.Run(kind+" "+l.name(), func(t *testing.T) { l.run(t, e) })
		}
	}
}

func (l left) name() string {
	return strings.ReplaceAll(l.target+","+l.temp, "\x00", "")
}

func (l left) run(t *testing.T, e patching.Edit) {
	r := newRig(t, t.TempDir())
	r.lay(map[string]string{"d/beside": "stays"})
	r.put("d/f", l.target)
	r.put("d/"+temporary, l.temp)
	p := patching.Planned{Edits: []patching.Edit{e}}
	o := r.settled(p)
	if o.Status != l.status {
		t.Errorf("it ended %s, want %s", o.Status, l.status)
	}
	if now := [2]string{r.get("d/f"), r.get("d/" + temporary)}; now != l.then {
		t.Errorf("there is %q, want %q", now, l.then)
	}
	l.judge(t, o)
	if got := r.get("d/beside"); got != "stays" {
		t.Errorf("beside it is %q", got)
	}
	if l.then[1] == none && l.status != patching.Unknown { // settled is settled
		now := r.tree()
		r.settled(p)
		if d := differs(r.tree(), now); d != "" {
			t.Errorf("settled again: %s", d)
		}
	}
}

// judge compares the facts, which name what is really there.
func (l left) judge(t *testing.T, o patching.Outcome) {
	t.Helper()
	if l.fact == "" {
		if len(o.Facts) > 0 {
			t.Errorf("facts %+v", o.Facts)
		}
		return
	}
	if len(o.Facts) != 1 || !strings.HasPrefix(o.Facts[0].Because, l.fact) || o.Facts[0].Path != "d/f" {
		t.Fatalf("facts %+v, want %q", o.Facts, l.fact)
	}
	f := o.Facts[0]
	if kept := l.then[1] != none; kept != (f.Kept == "d/"+temporary) || !kept && f.Kept != "" {
		t.Errorf("kept at %q, and the temporary is %q", f.Kept, l.then[1])
	}
	want := version(l.target)
	if l.target == link {
		want = string(openat2fs.SymlinkRejected)
	}
	if f.Found != want {
		t.Errorf("found %q, want %q", f.Found, want)
	}
}

func (r *rig) put(name, content string) {
	switch content {
	case none:
	case link:
		must(r.t, os.Symlink("/etc/passwd", r.at(name)))
	default:
		must(r.t, os.WriteFile(r.at(name), []byte(content), 0o644))
	}
}

func (r *rig) get(name string) string {
	info, err := os.Lstat(r.at(name))
	switch {
	case err != nil:
		return none
	case info.Mode()&os.ModeSymlink != 0:
		return link
	}
	content, err := os.ReadFile(r.at(name))
	must(r.t, err)
	return string(content)
}

// Of several edits one that is not done has all of them undone, and one whose kept
// content is removed already shows that all of them were done.
func TestSettleSeveralEdits(t *testing.T) {
	edits := []patching.Edit{
		{Path: "u", Temp: temporary, Before: version(former), After: version(fresh)},
		{Path: "a", Temp: temporary[:len(temporary)-1] + "2", Before: openat2fs.Absent, After: version(fresh)},
		{Path: "x", Temp: temporary[:len(temporary)-1] + "3", Before: version(former), After: openat2fs.Absent},
	}
	for _, c := range []struct {
		name   string
		places [6]string // target and temporary of each
		status patching.Status
		then   [3]string
		facts  string // paths
	}{
		{"nothing done", [6]string{former, fresh, none, fresh, former, none}, patching.RolledBack, [3]string{former, none, former}, ""},
		{"one done", [6]string{fresh, former, none, fresh, former, none}, patching.RolledBack, [3]string{former, none, former}, ""},
		{"two done", [6]string{fresh, former, fresh, none, former, none}, patching.RolledBack, [3]string{former, none, former}, ""},
		{"all done", [6]string{fresh, former, fresh, none, none, former}, patching.Applied, [3]string{fresh, fresh, none}, ""},
		{"cleaned in part", [6]string{fresh, none, fresh, none, none, former}, patching.Applied, [3]string{fresh, fresh, none}, ""},
		{"cleaned, and another has changed one since", [6]string{fresh, none, other, none, none, none}, patching.Applied, [3]string{fresh, other, none}, ""},
		{"undone in part", [6]string{former, none, none, none, none, former}, patching.RolledBack, [3]string{former, none, former}, ""},
		{"another has made one, and nothing was begun", [6]string{fresh, none, none, none, former, none}, patching.RolledBack, [3]string{fresh, none, former}, ""},
		{"another has made one, and another one waits", [6]string{fresh, none, none, fresh, former, none}, patching.Partial, [3]string{fresh, none, former}, "u"},
		{"another has made a new file, and nothing was begun", [6]string{former, none, fresh, none, former, none}, patching.RolledBack, [3]string{former, fresh, former}, ""},
		{"another has changed one that was done", [6]string{other, former, fresh, none, former, none}, patching.Partial, [3]string{other, none, former}, "u"},
		{"another has changed all", [6]string{other, none, other, none, other, none}, patching.Unknown, [3]string{other, other, other}, "u a x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, t.TempDir())
			for i, e := range edits {
				r.put(e.Path, c.places[2*i])
				r.put(e.Temp, c.places[2*i+1])
			}
			o := r.settled(patching.Planned{Edits: edits})
			var facts []string
			for _, f := range o.Facts {
				facts = append(facts, f.Path)
			}
			if now := [3]string{r.get("u"), r.get("a"), r.get("x")}; o.Status != c.status || now != c.then || strings.Join(facts, " ") != c.facts {
				t.Errorf("%s with %q, facts %q; want %s with %q, %q", o.Status, now, facts, c.status, c.then, c.facts)
			}
		})
	}
}

// A directory that is gone, or is another's link now, has nothing in it that could be
// brought back; the rest is.
func TestSettleWithoutTheDirectory(t *testing.T) {
	for _, by := range []string{none, link, other} {
		r := newRig(t, t.TempDir())
		r.put("u", fresh)
		r.put(temporary, former)
		r.put("d", by)
		edits := []patching.Edit{{Path: "u", Temp: temporary, Before: version(former), After: version(fresh)},
			{Path: "d/f", Temp: temporary, Before: version(former), After: version(fresh)}}
		o := r.settled(patching.Planned{Edits: edits, Made: []string{"d/e"}})
		if o.Status != patching.Partial || len(o.Facts) != 1 || o.Facts[0].Path != "d/f" || r.get("u") != former || r.get(temporary) != none || r.get("d") != by {
			t.Errorf("%q: %+v, and u is %q", by, o, r.get("u"))
		}
	}
}
