package patch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"codespace/openat2fs"
	"codespace/openat2fs/v4a"
	"codespace/runner/patching"
)

// plan is what a patch will do, with the contents in memory.
type plan struct {
	patching.Planned
	new map[string]content // by path, of every edit that leaves a file
}

// content is a file as it will be.
type content struct {
	bytes    []byte
	mode     uint32
	uid, gid int // -1: of whoever makes it
}

// planned works out what a patch does, or refuses it. It writes nothing.
func (h *Helper) planned(ctx context.Context, text []byte, expected map[string]string) (*plan, error) {
	parsed, err := v4a.Parse(text)
	if err != nil {
		return nil, err
	}
	if err := h.permitted(parsed); err != nil {
		return nil, err
	}
	if err := h.expect(ctx, expected); err != nil {
		return nil, err
	}
	wanted := map[string]string{}
	for file, version := range expected {
		wanted[plain(file)] = version
	}
	w := &workspace{ctx: ctx, root: h.root, seen: map[string]openat2fs.Stat{}} // after the versions: see possible
	changes, err := v4a.Plan(parsed, w)
	if err != nil {
		return nil, err
	}
	p := &plan{new: map[string]content{}}
	for _, c := range changes {
		if want, is := wanted[old(c)]; is && c.BeforeVersion != "" && want != c.BeforeVersion {
			return nil, conflict(old(c), want, c.BeforeVersion) // it was changed since the versions were compared
		}
		if err := h.possible(ctx, c, w.seen[old(c)]); err != nil {
			return nil, err
		}
		p.add(c, w.seen)
	}
	if p.Made, err = h.missing(ctx, p.Edits); err != nil {
		return nil, err
	}
	st, err := h.root.Stat(ctx, openat2fs.Path{})
	p.Root = st.Inode
	return p, errors.Join(err, p.bounded(h.directories))
}

// maxPlanBytes bounds the record of a plan.
const maxPlanBytes = 8 << 20

// bounded refuses a plan that makes or changes files in too many directories, which are
// all open until it is applied, or whose record is too long.
func (p *plan) bounded(directories int) error {
	dirs := map[string]bool{}
	size := 0
	for _, e := range p.Edits {
		dirs[path.Dir(e.Path)] = true
		size += 2*len(e.Path) + 400 // it is in a change too
	}
	for _, made := range p.Made {
		dirs[made] = true
		size += len(made) + 10
	}
	if len(dirs) > directories || size > maxPlanBytes {
		return &patching.Fault{Code: "INVALID_PATCH", Message: fmt.Sprintf("the patch has files in %d directories with paths of %d bytes, more than %d or %d",
			len(dirs), size, directories, maxPlanBytes), Next: "split it", Details: map[string]any{"directories": len(dirs), "limit": directories}}
	}
	return nil
}

// permitted refuses a patch that touches what is protected, or too much.
func (h *Helper) permitted(parsed v4a.Patch) error {
	touched := 0
	for _, hunk := range parsed.Hunks {
		for _, at := range []string{hunk.Path, hunk.MoveTo} {
			if at == "" {
				continue
			}
			touched++
			if _, name, err := split(at); err == nil && name.Reserved() { // find would not show it
				return &patching.Fault{Code: "INVALID_PATCH", Message: fmt.Sprintf("%q is named like a temporary of patches", at), Next: "use another name",
					Details: map[string]any{"path": at}}
			}
			if pattern, is := h.protects(at); is {
				return &patching.Fault{Code: "PATH_PROTECTED", Message: fmt.Sprintf("%q is protected by the workspace's policy (%s)", at, pattern),
					Next: "leave it out of the patch; only the operator changes it", Details: map[string]any{"path": at, "pattern": pattern}}
			}
		}
	}
	if touched > h.limits.Files {
		return &patching.Fault{Code: "INVALID_PATCH", Message: fmt.Sprintf("the patch names %d files, more than %d", touched, h.limits.Files),
			Next: "split it", Details: map[string]any{"limit": h.limits.Files}}
	}
	return nil
}

// protects says by which pattern a path is protected. Where anything of the repository's
// own directory is, a patch may touch nothing in it: too much there says where the rest
// is to be found.
func (h *Helper) protects(file string) (pattern string, is bool) {
	if slices.ContainsFunc(h.protected, func(p string) bool { return strings.HasPrefix(p, ".git/") }) {
		return openat2fs.Protects(append([]string{".git"}, h.protected...), file)
	}
	return openat2fs.Protects(h.protected, file)
}

// expect compares versions with what the caller has seen.
func (h *Helper) expect(ctx context.Context, expected map[string]string) error {
	texts := slices.Sorted(maps.Keys(expected))
	paths := make([]openat2fs.Path, len(texts))
	for i, text := range texts {
		if !versionPattern.MatchString(expected[text]) {
			return &patching.Fault{Code: "INVALID_ARGUMENT", Message: fmt.Sprintf("the expected version of %q is no version", text),
				Next: "give the version that read or version answered with (sha256: and 64 hex digits), or absent", Details: map[string]any{"path": text}}
		}
		p, err := openat2fs.ParsePath(plain(text))
		if err != nil {
			return err
		}
		paths[i] = p
	}
	all, err := h.root.Versions(ctx, paths)
	if err != nil {
		return err
	}
	for i, v := range all {
		if actual := found(v); actual != expected[texts[i]] {
			return conflict(texts[i], expected[texts[i]], actual)
		}
	}
	return nil
}

// plain is a path without "./" and doubled slashes, as the patch format has it.
func plain(file string) string {
	if slices.Contains(strings.Split(file, "/"), "..") || path.IsAbs(file) || strings.HasSuffix(file, "/") {
		return file // refused as it is
	}
	return path.Clean(file)
}

var versionPattern = regexp.MustCompile(`^(absent|sha256:[0-9a-f]{64})$`)

// found is the version of what is at a path or, where there is none, what it is.
func found(v openat2fs.Versioned) string {
	switch {
	case v.Version != "":
		return v.Version
	case v.Err != nil:
		return string(v.Err.Code)
	}
	return string(v.Stat.Kind)
}

func conflict(path, expected, actual string) *patching.Fault {
	return &patching.Fault{Code: "VERSION_CONFLICT", Message: fmt.Sprintf("%q is %s and not %s", path, actual, expected),
		Next: "read it again and make the patch for what is there", Details: map[string]any{"path": path, "expected": expected, "actual": actual}}
}

func tooLarge(path string, size, limit int64) *patching.Fault {
	return &patching.Fault{Code: "FILE_TOO_LARGE", Message: fmt.Sprintf("%q would have %d bytes, more than %d", path, size, limit),
		Next: "change it by a command instead", Details: map[string]any{"path": path, "size": size, "limit": limit}}
}

// old is where the content of a changed file was.
func old(c v4a.Change) string {
	if c.From != "" {
		return c.From
	}
	return c.Path
}

// possible refuses what would fail later for certain.
func (h *Helper) possible(ctx context.Context, c v4a.Change, was openat2fs.Stat) error {
	if size := int64(len(c.After)); size > h.limits.FileBytes {
		return tooLarge(c.Path, size, h.limits.FileBytes)
	}
	if c.BeforeVersion == "" || c.Kind == v4a.Delete {
		return nil
	}
	whose := "user"
	if int(was.UID) == h.uid {
		whose = "group"
		ours, err := h.inGroup(ctx, c.Path, was.GID)
		if ours || err != nil {
			return err
		}
	}
	return &patching.Fault{Code: "FILE_OPERATION_FAILED", Message: fmt.Sprintf("%q belongs to another %s, and a patch would make it the workspace owner's", old(c), whose),
		Next: "have it changed by its owner", Details: map[string]any{"path": old(c), "reason": "owner"}}
}

// inGroup says whether a new file at a path can have this group.
func (h *Helper) inGroup(ctx context.Context, file string, gid uint32) (bool, error) {
	if slices.Contains(h.groups, int(gid)) {
		return true, nil
	}
	p, err := pathOf(path.Dir(file))
	if err != nil {
		return false, err
	}
	st, err := h.root.Stat(ctx, p)
	if absent(err) {
		return false, nil
	}
	return st.Mode&unix.S_ISGID != 0 && st.GID == gid, err
}

// add makes the edits of one change. A change that changes nothing has none.
func (p *plan) add(c v4a.Change, seen map[string]openat2fs.Stat) {
	change := patching.Change{Path: c.Path, Kind: string(c.Kind), From: c.From, Before: c.BeforeVersion, After: c.AfterVersion}
	now := content{bytes: c.After, mode: newFile, uid: -1, gid: -1}
	if st, was := seen[old(c)]; was {
		now.mode, now.uid, now.gid = st.Mode&0o777, int(st.UID), int(st.GID)
	}
	if c.Kind != v4a.Delete {
		change.Mode = now.mode
	}
	p.Changes = append(p.Changes, change)
	switch c.Kind {
	case v4a.Add:
		p.edit(c.Path, openat2fs.Absent, c.AfterVersion)
	case v4a.Delete:
		p.edit(c.Path, c.BeforeVersion, openat2fs.Absent)
	case v4a.Move:
		p.edit(c.Path, openat2fs.Absent, c.AfterVersion)
		p.edit(c.From, c.BeforeVersion, openat2fs.Absent)
	case v4a.Update:
		if c.BeforeVersion == c.AfterVersion {
			return
		}
		p.edit(c.Path, c.BeforeVersion, c.AfterVersion)
	}
	if c.Kind != v4a.Delete {
		p.new[c.Path] = now
	}
}

// newFile is the mode of a file that was not there.
const newFile = 0o644

// newDirectory is that of a directory.
const newDirectory = 0o755

func (p *plan) edit(path, before, after string) {
	p.Edits = append(p.Edits, patching.Edit{Path: path, Temp: openat2fs.TempName().String(), Before: before, After: after})
}

// missing are the directories that files will be put in and that are not there,
// outermost first.
func (h *Helper) missing(ctx context.Context, edits []patching.Edit) ([]string, error) {
	there := map[string]bool{".": true}
	var made []string
	for _, e := range edits {
		if e.After == openat2fs.Absent {
			continue
		}
		var below []string
		for dir := path.Dir(e.Path); !there[dir]; dir = path.Dir(dir) {
			p, err := openat2fs.ParsePath(dir)
			if err != nil {
				return nil, err
			}
			st, err := h.root.Stat(ctx, p)
			if err != nil && !absent(err) {
				return nil, err
			}
			there[dir] = true
			if err == nil && st.Kind == openat2fs.Directory {
				break
			}
			below = append(below, dir)
		}
		slices.Reverse(below)
		made = append(made, below...)
	}
	return made, nil
}
