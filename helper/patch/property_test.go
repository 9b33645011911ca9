package patch

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codespace/openat2fs"
	"codespace/runner/patching"
)

// invented is a random tree and a patch of it.
type invented struct {
	before map[string]string
	hunks  strings.Builder
}

func invent(rnd *rand.Rand) *invented {
	v := &invented{before: map[string]string{}}
	for i := range 1 + rnd.IntN(8) {
		name := fmt.Sprintf("%sf%d", []string{"", "d/", "d/e/", "g/"}[rnd.IntN(4)], i)
		content := fmt.Sprintf("%d\nsecond\n", rnd.IntN(3)) // some are the same
		there := func() { v.before[name] = content }
		body := strings.ReplaceAll(content, "\n", "\n ")
		body = "@@\n " + strings.TrimSuffix(body, " ") + "+new\n"
		switch rnd.IntN(6) {
		case 0:
			there() // and no hunk
		case 1:
			fmt.Fprintf(&v.hunks, "*** Add File: %s\n+%d\n", []string{name, "made/" + name, "d/made/here/" + name}[rnd.IntN(3)], i)
		case 2:
			there()
			fmt.Fprintf(&v.hunks, "*** Delete File: %s\n", name)
		case 3:
			there()
			fmt.Fprintf(&v.hunks, "*** Update File: %s\n%s", name, body)
		case 4:
			there()
			fmt.Fprintf(&v.hunks, "*** Update File: %s\n*** Move to: moved/%s\n", name, name)
		default:
			there()
			fmt.Fprintf(&v.hunks, "*** Update File: %s\n*** Move to: d/moved%d\n%s", name, i, body)
		}
	}
	if v.hunks.Len() == 0 {
		v.hunks.WriteString("*** Add File: only\n")
	}
	return v
}

func (v *invented) patch() []byte {
	return []byte("*** Begin Patch\n" + v.hunks.String() + "*** End Patch\n")
}

// halfway is a patch that is done by hand, step by step, and never ended.
type halfway struct {
	*rig
	h *Helper
	p *plan
}

// steps are all that an apply does, in its order, each to be done alone.
func (w *halfway) steps() (all []func() error) {
	ctx := context.Background()
	for _, dir := range w.p.Made {
		all = append(all, func() error { return w.h.makeDir(ctx, dir) })
	}
	for _, e := range w.p.Edits {
		if e.After == openat2fs.Absent {
			continue
		}
		all = append(all, func() error { // the power fails in the middle of a write
			at, err := w.h.at(ctx, e)
			if err != nil {
				return err
			}
			half := w.p.new[e.Path]
			half.bytes = half.bytes[:len(half.bytes)/2]
			return write(at.temp, half)
		}, func() error {
			at, err := w.h.at(ctx, e)
			if err == nil {
				err = w.h.drop(at.temp)
			}
			if err == nil {
				err = write(at.temp, w.p.new[e.Path])
			}
			return err
		})
	}
	for i := range w.p.Edits {
		all = append(all, func() error { return w.h.commit(ctx, w.p.Edits[i:i+1]) })
	}
	return all
}

// cleaning are the steps after the last that could be undone.
func (w *halfway) cleaning() (all []func() error) {
	for _, e := range w.p.Edits {
		if e.Before != openat2fs.Absent {
			all = append(all, func() error { return os.Remove(filepath.Join(filepath.Dir(w.at(e.Path)), e.Temp)) })
		}
	}
	return all
}

// undoing takes n steps back, as an apply that failed does: every edit, the last first,
// and then its temporaries.
func (w *halfway) undoing(n int) error {
	states, err := w.h.look(context.Background(), w.p.Edits)
	if err != nil {
		return err
	}
	var drop []openat2fs.Place
	for _, s := range slices.Backward(states[max(len(states)-n, 0):]) {
		at, err := w.h.at(context.Background(), s.Edit)
		if gone(err) {
			continue // not made yet
		}
		if err != nil {
			return err
		}
		_, done, err := w.h.undo(context.Background(), s, undoing{at, true})
		if err != nil {
			return err
		}
		if done {
			drop = append(drop, at.temp)
		}
	}
	for _, at := range drop[:min(max(n-len(states), 0), len(drop))] {
		if err := w.h.drop(at); err != nil {
			return err
		}
	}
	return nil
}

// TestStoppedAfterEachStep does a random patch up to a random step, and then it is
// settled by somebody who has but the plan: all of it, or nothing.
func TestStoppedAfterEachStep(t *testing.T) {
	r := newRig(t, memory(t))
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	rounds, ends := 3000, map[string]int{}
	if testing.Short() {
		rounds = 300
	}
	for i := range rounds {
		how, wrong := stopped(r, rnd)
		if wrong != "" {
			t.Fatalf("seed %d, round %d: %s: %s", seed, i, how, wrong)
		}
		ends[how]++
	}
	t.Logf("%d patches were stopped: %v", rounds, ends)
	for _, how := range []string{"before the end", "after the last edit", "while it was cleaned", "while it was undone"} {
		if ends[how] == 0 {
			t.Errorf("none was stopped %s", how)
		}
	}
}

// stopped is one of them: where it was stopped, and what is wrong.
func stopped(r *rig, rnd *rand.Rand) (how, wrong string) {
	v := invent(rnd)
	r.lay(v.before)
	before := r.tree()
	after := r.applied(v)
	r.lay(v.before)
	h := r.helper()
	defer h.end()
	p, err := h.planned(context.Background(), v.patch(), nil)
	must(r.t, err)
	if d := differs(r.tree(), before); d != "" {
		return "planned", d
	}
	w := &halfway{r, h, p}
	steps, cleaning := w.steps(), w.cleaning()
	n := rnd.IntN(len(steps) + len(cleaning) + 1)
	how, want := "before the end", before
	if n >= len(steps) {
		how, want = "after the last edit", after
	}
	if n > len(steps) {
		how = "while it was cleaned"
	}
	for _, step := range slices.Concat(steps, cleaning)[:n] {
		must(r.t, step())
	}
	if n < len(steps) && rnd.IntN(3) == 0 {
		how = "while it was undone"
		must(r.t, w.undoing(1+rnd.IntN(2*len(p.Edits))))
	}
	if len(p.Edits) == 0 {
		return how, "a patch without edits"
	}
	o := r.settled(p.Planned)
	status := patching.RolledBack
	if how != "while it was undone" && n >= len(steps) {
		status = patching.Applied
	}
	d := differs(r.tree(), want)
	if o.Status != status || len(o.Facts) > 0 || d != "" {
		return how, fmt.Sprintf("%s, want %s; %+v; %s\nafter %d of %d steps of\n%s", o.Status, status, o.Facts, d, n, len(steps), v.patch())
	}
	return how, ""
}

// applied is the tree with the patch applied, by the helper itself.
func (r *rig) applied(v *invented) map[string]string {
	r.t.Helper()
	h := r.helper()
	defer h.end()
	p, err := h.planned(context.Background(), v.patch(), nil)
	must(r.t, err)
	o, err := h.apply(context.Background(), p)
	must(r.t, err)
	now := r.tree()
	if o.Status != patching.Applied || len(o.Facts) > 0 {
		r.t.Fatalf("%+v of\n%s", o, v.patch())
	}
	for _, e := range p.Edits { // the plan is what was done
		if got := r.get(e.Path); got == none && e.After != openat2fs.Absent || got != none && openat2fs.VersionOf([]byte(got)) != e.After {
			r.t.Fatalf("%s is %q, and was to be %s", e.Path, got, e.After)
		}
	}
	for name := range maps.Keys(now) {
		if strings.Contains(name, ".codespace-tmp-") {
			r.t.Fatalf("a temporary is left: %s", name)
		}
	}
	return now
}
