package patch

import (
	"context"
	"errors"
	"path"
	"slices"

	"codespace/openat2fs"
	"codespace/runner/patching"
)

// errInterrupted is the cause where nobody knows how far a patch had come.
var errInterrupted = errors.New("the patch was interrupted")

// settle brings a patch to its end by what is on the disk: all of it as planned, or all
// of it as it was. cause is why it must not be completed; nil and errInterrupted leave
// that to the disk.
func (h *Helper) settle(ctx context.Context, p patching.Planned, cause error) (patching.Outcome, error) {
	states, err := h.look(ctx, p.Edits)
	if err != nil {
		return patching.Outcome{}, err
	}
	interrupted := cause == errInterrupted
	if (cause == nil || interrupted) && complete(states) {
		return patching.Outcome{Status: patching.Applied}, h.finish(ctx, p, states)
	}
	if interrupted && !slices.ContainsFunc(states, state.telling) {
		return unclear(states), nil
	}
	if cause == nil {
		cause = mismatch(states)
	}
	facts, failed := h.undoAll(ctx, states, interrupted)
	out := patching.Outcome{Status: patching.RolledBack, Facts: facts}
	if !interrupted && failed != nil { // another helper tries once more
		return patching.Outcome{}, errors.Join(cause, failed)
	}
	if !interrupted {
		out.Cause = faultOf(cause)
	}
	if len(out.Facts) > 0 {
		out.Status = patching.Partial
	}
	made := p.Made
	if h.applying { // not what somebody else has made since the plan
		made = h.made
	}
	if err := h.unmake(ctx, made); err != nil {
		return patching.Outcome{}, err
	}
	return out, h.sync(ctx, p)
}

// mismatch is the first edit that is not done: somebody else was in between.
func mismatch(states []state) error {
	for _, s := range states {
		switch {
		case s.done():
		case s.target == s.After:
			return conflict(s.Path, s.Before, s.temp)
		default:
			return conflict(s.Path, s.After, s.target)
		}
	}
	return nil
}

// unclear is the outcome where nothing on the disk tells whether the patch was applied.
func unclear(states []state) patching.Outcome {
	out := patching.Outcome{Status: patching.Unknown}
	for _, s := range states {
		if s.unclear() {
			out.Facts = append(out.Facts, s.fact("somebody else has changed it", false))
		}
	}
	return out
}

// finish makes a complete patch last and removes what the targets were before; with
// that it cannot be undone. The old content of one file may go before its directory is
// on the disk: without it, the new one is there. What was removed by another helper may
// not be on the disk either.
func (h *Helper) finish(ctx context.Context, p patching.Planned, states []state) error {
	if len(states) > 1 || len(states) == 1 && states[0].temp == openat2fs.Absent {
		if err := h.sync(ctx, p); err != nil {
			return err
		}
	}
	var cleaned []patching.Edit
	for _, s := range states {
		if s.temp == openat2fs.Absent || s.temp != s.Before {
			continue
		}
		at, err := h.at(ctx, s.Edit)
		if err != nil {
			return err
		}
		if err := h.drop(at.temp); err != nil {
			return err
		}
		cleaned = append(cleaned, s.Edit)
	}
	return h.sync(ctx, patching.Planned{Edits: cleaned})
}

// undoAll brings all edits back: first everything to its place, then the temporaries
// go. So as long as one that was written is missing, nothing of ours is in place. What
// could not be brought back is a fact each, and an error where the machine failed.
// Then no temporary goes, unless this is the last try.
func (h *Helper) undoAll(ctx context.Context, states []state, last bool) (facts []patching.Fact, failed error) {
	var drop []openat2fs.Place
	staged := !slices.ContainsFunc(states, state.unstaged)
	for _, s := range slices.Backward(states) {
		at, err := h.at(ctx, s.Edit)
		if gone(err) && (s.target == s.Before || h.applying) { // nothing was made there: what this helper could not open it did not change
			continue
		}
		if err != nil {
			facts = append(facts, s.fact("its directory cannot be used: "+err.Error(), false))
			failed = errors.Join(failed, err)
			continue
		}
		fact, done, err := h.undo(ctx, s, undoing{at, staged})
		if err != nil {
			fact = new(s.fact("it cannot be brought back: "+err.Error(), true))
			failed = errors.Join(failed, err)
		}
		if fact != nil {
			facts = append(facts, *fact)
		}
		if done {
			drop = append(drop, at.temp)
		}
	}
	if failed != nil && !last {
		return facts, failed
	}
	for _, at := range drop {
		if err := h.drop(at); err != nil {
			facts = append(facts, patching.Fact{Path: at.Name.String(), Because: "it cannot be removed: " + err.Error()})
			failed = errors.Join(failed, err)
		}
	}
	return facts, failed
}

// undoing is what undo knows besides the state of its edit.
type undoing struct {
	places
	staged bool // every new content was written, so that some may be in place
}

// undo brings one edit back, and says whether its temporary may go. What somebody else
// has made meanwhile stays, and is a fact.
func (h *Helper) undo(ctx context.Context, s state, u undoing) (fact *patching.Fact, drop bool, err error) {
	switch {
	case s.foreign() && (s.target == s.Before || s.Before == openat2fs.Absent): // what was moved away was not what the plan names
		return new(s.fact("somebody else has changed it, twice", true)), false, nil
	case s.target == s.Before: // never changed, or brought back already
		return nil, true, nil
	case s.Before == openat2fs.Absent:
		return h.undoAdd(ctx, s, u)
	case s.temp == openat2fs.Absent:
		if s.target == s.After && u.staged {
			return new(s.fact("what stood there is gone", false)), false, nil
		}
		return nil, false, nil // somebody else's, and never touched
	case s.temp == s.After: // not in place yet, and somebody else has changed the target
		return nil, true, nil
	case s.target == openat2fs.Absent && (s.temp == s.Before || s.After == openat2fs.Absent):
		err := h.rename(u.temp, u.target, openat2fs.Keep)
		if taken(err) {
			return new(s.fact("somebody else has made it anew", true)), false, nil
		}
		return nil, false, err
	case s.target == s.After:
		return h.exchangeBack(ctx, s, u)
	}
	return new(s.fact("somebody else has changed it", true)), false, nil
}

func (h *Helper) undoAdd(ctx context.Context, s state, u undoing) (fact *patching.Fact, drop bool, err error) {
	switch {
	case s.temp != openat2fs.Absent: // not in place yet, and somebody else was
		return nil, true, nil
	case !u.staged: // not ours
		return nil, false, nil
	case s.target != s.After:
		return new(s.fact("somebody else has changed it", false)), false, nil
	}
	err = h.rename(u.target, u.temp, openat2fs.Keep)
	if absent(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	got, err := h.version(ctx, u.temp)
	if err == nil && got == s.After {
		return nil, true, nil
	}
	// Changed between the look and the rename.
	return new(s.fact("somebody else has changed it", false)), false, errors.Join(err, h.rename(u.temp, u.target, openat2fs.Keep))
}

func (h *Helper) exchangeBack(ctx context.Context, s state, u undoing) (fact *patching.Fact, drop bool, err error) {
	if err := h.rename(u.temp, u.target, openat2fs.Exchange); err != nil {
		return nil, false, err
	}
	got, err := h.version(ctx, u.temp)
	if err == nil && got == s.After {
		return nil, true, nil
	}
	// Changed between the look and the rename.
	return new(s.fact("somebody else has changed it", true)), false, errors.Join(err, h.rename(u.temp, u.target, openat2fs.Exchange))
}

func (s state) fact(because string, kept bool) patching.Fact {
	f := patching.Fact{Path: s.Path, Found: s.target, Because: because}
	if kept {
		f.Kept = path.Join(path.Dir(s.Path), s.Temp)
	}
	return f
}
