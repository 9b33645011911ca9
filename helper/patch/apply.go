package patch

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"codespace/openat2fs"
	"codespace/runner/failpoint"
	"codespace/runner/patching"
)

// apply changes every file of a plan, or none.
func (h *Helper) apply(ctx context.Context, p *plan) (patching.Outcome, error) {
	h.applying = true
	err := h.stage(ctx, p)
	if err == nil {
		err = h.commit(ctx, p.Edits)
	}
	if err == nil {
		err = h.unchanged(ctx, p)
	}
	return h.settle(ctx, p.Planned, err)
}

// unchanged wants the files that were replaced to have the mode and owner that the new
// ones were given: somebody may have changed them since the plan.
func (h *Helper) unchanged(ctx context.Context, p *plan) error {
	for _, e := range p.Edits {
		c, kept := p.new[e.Path]
		if !kept || e.Before == openat2fs.Absent {
			continue
		}
		at, err := h.at(ctx, e)
		if err != nil {
			return err
		}
		st, err := at.temp.Dir.Stat(at.temp.Name)
		if err != nil {
			return err
		}
		if st.Kind == openat2fs.File && (st.Mode&0o777 != c.mode || int(st.UID) != c.uid || int(st.GID) != c.gid) {
			return &patching.Fault{Code: "VERSION_CONFLICT", Message: fmt.Sprintf("mode or owner of %q were changed meanwhile", e.Path), Next: "send it again",
				Retryable: true, Details: map[string]any{"path": e.Path, "expected": modeOf(c.mode), "actual": modeOf(st.Mode)}}
		}
	}
	return nil
}

func modeOf(mode uint32) string { return fmt.Sprintf("mode %04o", mode) }

// stage puts every new content beside its target, on the disk.
func (h *Helper) stage(ctx context.Context, p *plan) error {
	for _, dir := range p.Made {
		if err := h.makeDir(ctx, dir); err != nil {
			return err
		}
	}
	for _, e := range p.Edits {
		if e.After == openat2fs.Absent {
			continue
		}
		at, err := h.at(ctx, e)
		if err == nil {
			err = write(at.temp, p.new[e.Path])
		}
		if err != nil {
			return about(e.Path, err)
		}
	}
	return nil
}

// makeDir makes a directory in the very one that it would be removed from.
func (h *Helper) makeDir(ctx context.Context, dir string) error {
	above, name, err := split(dir)
	if err != nil {
		return err
	}
	d, err := h.dir(ctx, above)
	if err == nil {
		err = failpoint.Hit("mkdir")
	}
	if err != nil {
		return err
	}
	made, isNew, err := d.OpenOrMake(name, newDirectory)
	if isNew {
		h.made = append(h.made, dir)
	}
	if err == nil {
		h.dirs[dir] = made
	}
	return err
}

func write(at openat2fs.Place, c content) (err error) {
	if err := failpoint.Hit("create"); err != nil {
		return err
	}
	t, err := at.Dir.CreateTemp(at.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"write", func() error { _, err := t.Write(c.bytes); return err }},
		{"chown", func() error { return owned(t, c) }},
		{"chmod", func() error { return t.SetMode(c.mode) }},
		{"fsync", t.Sync},
	} {
		if err := failpoint.Hit(step.name); err != nil {
			return err
		}
		if err := step.do(); err != nil {
			return err
		}
	}
	return nil
}

func owned(t *openat2fs.Temp, c content) error {
	if c.uid < 0 {
		return nil
	}
	return t.SetOwner(c.uid, c.gid)
}

// commit puts every edit in place. What turns out not to be what was planned for is
// found when the disk is looked at afterwards.
func (h *Helper) commit(ctx context.Context, edits []patching.Edit) error {
	for _, e := range edits {
		at, err := h.at(ctx, e)
		if err != nil {
			return err
		}
		switch {
		case e.Before == openat2fs.Absent:
			err = h.rename(at.temp, at.target, openat2fs.Keep)
		case e.After == openat2fs.Absent:
			err = h.rename(at.target, at.temp, openat2fs.Keep)
		default:
			err = h.rename(at.temp, at.target, openat2fs.Exchange)
		}
		switch {
		case taken(err):
			return conflict(e.Path, openat2fs.Absent, "there")
		case absent(err):
			return conflict(e.Path, e.Before, openat2fs.Absent)
		case forbidden(err): // Landlock lets nothing but files and directories change places
			if st, _ := at.target.Dir.Stat(at.target.Name); st.Kind != "" && st.Kind != openat2fs.File {
				return conflict(e.Path, e.Before, string(st.Kind))
			}
			return about(e.Path, err)
		case errors.Is(err, unix.EINVAL):
			return &patching.Fault{Code: "FILE_OPERATION_FAILED", Message: "the workspace's file system cannot let two files change places in one step (renameat2)",
				Next: "use a workspace on another file system, or change files by commands", Details: map[string]any{"path": e.Path, "reason": "renameat2"}}
		case err != nil:
			return about(e.Path, err)
		}
	}
	return nil
}

// places are those of an edit, in one directory.
type places struct{ target, temp openat2fs.Place }

// at opens the directory of an edit, once: all that is done to the edit is done in it.
func (h *Helper) at(ctx context.Context, e patching.Edit) (places, error) {
	dir, target, err := split(e.Path)
	if err != nil {
		return places{}, err
	}
	temp, err := openat2fs.ParseName(e.Temp)
	if err != nil {
		return places{}, err
	}
	d, err := h.dir(ctx, dir)
	return places{openat2fs.Place{Dir: d, Name: target}, openat2fs.Place{Dir: d, Name: temp}}, err
}

func (h *Helper) dir(ctx context.Context, p openat2fs.Path) (*openat2fs.Dir, error) {
	if d := h.dirs[p.String()]; d != nil {
		return d, nil
	}
	d, err := h.root.OpenDir(ctx, p)
	if err != nil {
		return nil, err
	}
	h.dirs[p.String()] = d
	return d, nil
}

func (h *Helper) rename(from, to openat2fs.Place, how openat2fs.Renaming) error {
	if err := failpoint.Hit("rename"); err != nil {
		return err
	}
	return openat2fs.Rename(from, to, how)
}

// drop removes a temporary, if it is there.
func (h *Helper) drop(at openat2fs.Place) error {
	if err := failpoint.Hit("unlink"); err != nil {
		return err
	}
	if err := at.Dir.Unlink(at.Name); !absent(err) {
		return err
	}
	return nil
}

// sync waits until the names of all directories concerned are on the disk.
func (h *Helper) sync(ctx context.Context, p patching.Planned) error {
	dirs := map[string]bool{}
	for _, e := range p.Edits {
		dirs[path.Dir(e.Path)] = true
	}
	for _, made := range p.Made {
		dirs[path.Dir(made)] = true
	}
	for dir := range dirs {
		if err := h.syncDir(ctx, dir); err != nil && !gone(err) && !forbidden(err) {
			return err
		}
	}
	return nil
}

func (h *Helper) syncDir(ctx context.Context, dir string) error {
	p, err := pathOf(dir)
	if err != nil {
		return err
	}
	d, err := h.dir(ctx, p)
	if err != nil {
		return err
	}
	if err := failpoint.Hit("fsync directory"); err != nil {
		return err
	}
	return d.Sync()
}

// unmake removes the directories that were made, where they are empty.
func (h *Helper) unmake(ctx context.Context, made []string) error {
	for _, dir := range slices.Backward(made) {
		if err := h.rmdir(ctx, dir); err != nil && !gone(err) && !taken(err) && !forbidden(err) {
			return err
		}
	}
	return nil
}

func (h *Helper) rmdir(ctx context.Context, dir string) error {
	above, name, err := split(dir)
	if err != nil {
		return err
	}
	d, err := h.dir(ctx, above)
	if err == nil {
		err = failpoint.Hit("rmdir")
	}
	if err != nil {
		return err
	}
	return d.Rmdir(name)
}

// split is the directory that a path lies in, and its name there.
func split(text string) (openat2fs.Path, openat2fs.Name, error) {
	p, err := openat2fs.ParsePath(text)
	if err != nil {
		return openat2fs.Path{}, openat2fs.Name{}, err
	}
	return p.Split()
}

// pathOf is a directory as package path writes it.
func pathOf(dir string) (openat2fs.Path, error) {
	if dir == "." {
		return openat2fs.Path{}, nil
	}
	return openat2fs.ParsePath(dir)
}
