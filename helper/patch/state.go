package patch

import (
	"context"
	"slices"
	"strings"

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
	return s.target == s.After && (s.temp == s.Before || s.temp == openat2fs.Absent)
}

// cleaned: what stood there was removed already.
func (s state) cleaned() bool {
	return s.Before != openat2fs.Absent && s.After != openat2fs.Absent && s.target == s.After && s.temp == openat2fs.Absent
}

// pending: the target is as it was, or the new content waits beside it.
func (s state) pending() bool {
	return s.target == s.Before || s.After != openat2fs.Absent && s.temp == s.After
}

// unstaged: the new content is neither in place nor beside it, so that either not all
// were written, or all places were brought back already.
func (s state) unstaged() bool {
	return s.After != openat2fs.Absent && s.target != s.After && s.temp == openat2fs.Absent
}

// foreign: beside the target stands what no patch puts there: neither what the plan
// names nor a file that may be half written.
func (s state) foreign() bool {
	if s.temp == openat2fs.Absent || s.temp == s.Before || s.temp == s.After || s.temp == unreadable {
		return false
	}
	return s.After == openat2fs.Absent || !strings.HasPrefix(s.temp, "sha256:")
}

// unclear: somebody else's content and no temporary, so that this edit was either never
// begun or done and changed again afterwards.
func (s state) unclear() bool {
	return s.temp == openat2fs.Absent && s.target != s.Before && s.target != s.After
}

// telling: the patch had not ended, since something is as it was before or kept still.
func (s state) telling() bool {
	return s.temp != openat2fs.Absent || !s.done() && !s.unclear()
}

// complete: every edit is done. Where one is cleaned they all were, and what somebody
// has changed since does not count; unless one still waits, for then it was somebody
// else who made the first what it should become.
func complete(states []state) bool {
	if !slices.ContainsFunc(states, func(s state) bool { return !s.done() }) {
		return true
	}
	return slices.ContainsFunc(states, state.cleaned) && !slices.ContainsFunc(states, state.pending)
}

// look reads the state of every edit from the disk.
func (h *Helper) look(ctx context.Context, edits []patching.Edit) ([]state, error) {
	states := make([]state, len(edits))
	for i, e := range edits {
		at, err := h.at(ctx, e)
		if gone(err) || forbidden(err) { // the directory, and all that would be in it
			states[i] = state{e, openat2fs.Absent, openat2fs.Absent}
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

// unreadable stands for the version of a file that may not be read any more.
const unreadable = "unreadable"

// version reads what is at a place. An error is one of the machine.
func (h *Helper) version(ctx context.Context, at openat2fs.Place) (string, error) {
	var err error
	h.buffer, _, err = at.Dir.Load(ctx, at.Name, h.buffer[:0])
	if err == nil {
		return openat2fs.VersionOf(h.buffer), nil
	}
	code := codeOf(err)
	switch {
	case code == openat2fs.FileNotFound:
		return openat2fs.Absent, nil
	case forbidden(err):
		return unreadable, nil
	case code == "" || code == openat2fs.FileOperationFailed || code == openat2fs.PathContended:
		return "", err
	}
	return string(code), nil
}
