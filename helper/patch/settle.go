package patch

import (
	"context"
	"errors"
	"path"
	"slices"

	"codespace/openat2fs"
	"codespace/runner/patching"
)

// state is what stands at the two places of an edit: a version, Absent, or the code of
// why there is none.
type state struct {
	patching.Edit
	target, temp string
}

// done: the target is as planned, and what stood there is kept, or was removed already.
// Nothing that is kept is removed before every edit is done.
func (s state) done() bool {
	return s.target == s.After && (s.temp == s.Before || s.temp == patching.Absent)
}

// cleaned: what stood there was removed already, so every edit was done once.
func (s state) cleaned() bool {
	return s.Before != patching.Absent && s.After != patching.Absent && s.target == s.After && s.temp == patching.Absent
}

// look reads the state of every edit from the disk.
func (h *Helper) look(ctx context.Context, edits []patching.Edit) ([]state, error) {
	states := make([]state, len(edits))
	for i, e := range edits {
		at, err := h.at(ctx, e)
		if gone(err) { // the directory, and all that would be in it
			states[i] = state{e, patching.Absent, patching.Absent}
			if !absent(err) {
				states[i].target = string(codeOf(err))
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		states[i] = state{Edit: e}
		if states[i].target, err = h.version(ctx, at.target); err != nil {
			return nil, err
		}
		if states[i].temp, err = h.version(ctx, at.temp); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// version reads what is at a place. An error is one of the machine.
func (h *Helper) version(ctx context.Context, at openat2fs.Place) (string, error) {
	var err error
	h.buffer, _, err = at.Dir.Load(ctx, at.Name, h.buffer[:0])
	if err == nil {
		return openat2fs.VersionOf(h.buffer), nil
	}
	code := codeOf(err)
	switch code {
	case "":
		return "", err
	case openat2fs.FileNotFound:
		return patching.Absent, nil
	case openat2fs.FileOperationFailed, openat2fs.PathContended:
		return "", err
	}
	return string(code), nil
}

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
		return patching.Outcome{Status: patching.Applied}, h.clean(ctx, states)
	}
	if interrupted && !slices.ContainsFunc(states, state.telling) {
		return unclear(states), nil
	}
	if cause == nil || interrupted {
		cause = mismatch(states)
	}
	out := patching.Outcome{Status: patching.RolledBack, Cause: faultOf(cause)}
	for _, s := range slices.Backward(states) {
		fact, err := h.undo(ctx, s)
		if err != nil {
			return patching.Outcome{}, err
		}
		if fact != nil {
			out.Status, out.Facts = patching.Partial, append(out.Facts, *fact)
		}
	}
	if err := h.sync(ctx, p); err != nil {
		return patching.Outcome{}, err
	}
	return out, h.unmake(ctx, p.Made)
}

// unclear: somebody else's content and no temporary, so that this edit was either never
// begun or done and changed again afterwards.
func (s state) unclear() bool {
	return s.temp == patching.Absent && s.target != s.Before && s.target != s.After
}

// telling: the patch had not ended, since something is as it was before or kept still.
func (s state) telling() bool {
	return s.temp != patching.Absent || !s.done() && !s.unclear()
}

// unclear is the outcome where nothing on the disk tells whether the patch was applied.
func unclear(states []state) patching.Outcome {
	out := patching.Outcome{Status: patching.Unknown}
	for _, s := range states {
		if s.unclear() {
			out.Facts = append(out.Facts, *s.fact("somebody else has changed it", false))
		}
	}
	return out
}

func complete(states []state) bool {
	return slices.ContainsFunc(states, state.cleaned) || !slices.ContainsFunc(states, func(s state) bool { return !s.done() })
}

// mismatch is the first edit that is not done: somebody else was in between.
func mismatch(states []state) error {
	for _, s := range states {
		if s.done() {
			continue
		}
		if s.target == s.After {
			return conflict(s.Path, s.Before, s.temp)
		}
		return conflict(s.Path, s.After, s.target)
	}
	return nil
}

// clean removes what the targets were before. With that the patch cannot be undone.
func (h *Helper) clean(ctx context.Context, states []state) error {
	var kept []patching.Edit
	for _, s := range states {
		if s.temp == patching.Absent || s.temp != s.Before {
			continue
		}
		at, err := h.at(ctx, s.Edit)
		if err != nil {
			return err
		}
		if err := h.drop(at.temp); err != nil {
			return err
		}
		kept = append(kept, s.Edit)
	}
	return h.sync(ctx, patching.Planned{Edits: kept})
}

// undo brings one edit back. It removes no content but what the plan names or what was
// not in place yet; what somebody else has made meanwhile stays, and is a fact.
func (h *Helper) undo(ctx context.Context, s state) (*patching.Fact, error) {
	at, err := h.at(ctx, s.Edit)
	if gone(err) { // nothing was made there, or somebody has taken the directory away
		if s.target == s.Before || h.applying { // what this helper could not open it did not change
			return nil, nil
		}
		return s.fact("its directory is gone", false), nil
	}
	if err != nil {
		return nil, err
	}
	switch {
	case s.After == patching.Absent && s.target == s.Before && s.temp != s.Before && s.temp != patching.Absent:
		return s.fact("somebody else has changed it, twice", true), nil // what was moved away was not what the plan names
	case s.target == s.Before: // never changed, or brought back already
		return nil, h.drop(at.temp)
	case s.Before == patching.Absent:
		return h.undoAdd(ctx, s, at)
	case s.temp == patching.Absent:
		if s.target == s.After {
			return s.fact("what stood there is gone", false), nil
		}
		return nil, nil // somebody else's, and never touched
	case s.temp == s.After: // not in place yet, and somebody else has changed the target
		return nil, h.drop(at.temp)
	case s.target == patching.Absent && (s.temp == s.Before || s.After == patching.Absent):
		return h.putBack(s, at)
	case s.target == s.After:
		return h.exchangeBack(ctx, s, at)
	}
	return s.fact("somebody else has changed it", true), nil
}

func (h *Helper) undoAdd(ctx context.Context, s state, at places) (*patching.Fact, error) {
	if s.temp != patching.Absent { // not in place yet, and somebody else was
		return nil, h.drop(at.temp)
	}
	if s.target != s.After {
		return s.fact("somebody else has changed it", false), nil
	}
	err := h.rename(at.target, at.temp, openat2fs.Keep)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	got, err := h.version(ctx, at.temp)
	if err != nil {
		return nil, err
	}
	if got != s.After { // changed between the look and the rename
		return s.fact("somebody else has changed it", false), h.rename(at.temp, at.target, openat2fs.Keep)
	}
	return nil, h.drop(at.temp)
}

func (h *Helper) putBack(s state, at places) (*patching.Fact, error) {
	err := h.rename(at.temp, at.target, openat2fs.Keep)
	if taken(err) {
		return s.fact("somebody else has made it anew", true), nil
	}
	return nil, err
}

func (h *Helper) exchangeBack(ctx context.Context, s state, at places) (*patching.Fact, error) {
	if err := h.rename(at.temp, at.target, openat2fs.Exchange); err != nil {
		return nil, err
	}
	got, err := h.version(ctx, at.temp)
	if err != nil {
		return nil, err
	}
	if got != s.After { // changed between the look and the rename
		return s.fact("somebody else has changed it", true), h.rename(at.temp, at.target, openat2fs.Exchange)
	}
	return nil, h.drop(at.temp)
}

func (s state) fact(because string, kept bool) *patching.Fact {
	f := &patching.Fact{Path: s.Path, Found: s.target, Because: because}
	if kept {
		f.Kept = path.Join(path.Dir(s.Path), s.Temp)
	}
	return f
}
