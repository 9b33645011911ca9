package runner

import (
	"context"
	"errors"
	"sync"

	"codespace/openat2fs"
	"codespace/policy"
	"codespace/runner/files"

	"golang.org/x/sys/unix"
)

// roots are the directory handles of the workspaces, one each, opened at the first
// use and anew when another directory stands at a workspace's path.
type roots struct {
	rootMu sync.Mutex
	roots  map[string]*root
}

type root struct {
	is      openat2fs.Identity
	owner   owner
	threads *threads // of the owner
	*openat2fs.Root
}

// open is the handle of a decided workspace.
func (r *roots) open(g policy.Grant) (*root, error) {
	at, st, err := openRoot(g.Workspace.Root)
	if err != nil {
		var f *Fault
		if errors.As(err, &f) { // the sandbox's words for the same
			err = &Fault{Code: FileOperationFailed, Message: f.Message, Next: "restore the directory or have the operator register another"}
		}
		return nil, err
	}
	is, who := openat2fs.Identity{Device: at.Device, Inode: at.Inode}, owner{st.Uid, st.Gid}
	r.rootMu.Lock()
	defer r.rootMu.Unlock()
	if known := r.roots[g.Workspace.ID]; known != nil && known.is == is && known.owner == who {
		return known, nil
	}
	fs, err := openat2fs.Open(at.Path, is, openat2fs.Limits{})
	if err != nil {
		return nil, fileFault(err)
	}
	if known := r.roots[g.Workspace.ID]; known != nil {
		go known.Close() // once its calls have ended
	}
	if r.roots == nil {
		r.roots = map[string]*root{}
	}
	r.roots[g.Workspace.ID] = &root{is, who, newThreads(who), fs}
	return r.roots[g.Workspace.ID], nil
}

// forget gives up the handle of a root that is no longer at its path.
func (r *roots) forget(workspace string, is openat2fs.Identity) {
	r.rootMu.Lock()
	defer r.rootMu.Unlock()
	if known := r.roots[workspace]; known != nil && known.is == is {
		delete(r.roots, workspace)
		go known.Close() // once its calls have ended
	}
}

// rootOf decides that a workspace's files may be read, and opens its root, which is
// watched from then on.
func (r *Runner) rootOf(workspace, digest string) (*root, error) {
	g, err := r.grant(workspace, digest, policy.Action{Kind: policy.ReadFiles})
	if err != nil {
		return nil, err
	}
	at, err := r.roots.open(g)
	if err == nil {
		r.watch(workspace, at)
	}
	return at, err
}

// at is a workspace as the gateway has decided about it.
type at struct{ workspace, digest string }

// within does work beneath a workspace's root, as its owner. Where the handle is given up
// in that moment, because another directory stands at the root's path, it does it there.
func within[T any](r *Runner, a at, work func(*root) (T, error)) (T, error) {
	for tries := 1; ; tries++ {
		fs, err := r.rootOf(a.workspace, a.digest)
		if err != nil {
			var none T
			return none, err
		}
		got, err := asOwner(fs.threads, func() (T, error) { return work(fs) })
		if tries < 3 && errors.Is(err, unix.EBADF) {
			continue
		}
		return got, fileFault(err)
	}
}

// ReadFile reads a part of one regular file.
func (r *Runner) ReadFile(ctx context.Context, req files.ReadRequest) (files.ReadResult, error) {
	path, err := openat2fs.ParsePath(req.Path)
	if err != nil {
		return files.ReadResult{}, fileFault(err)
	}
	asked := openat2fs.Range{Offset: req.Offset, Length: req.Length, StartLine: req.StartLine, LineCount: req.LineCount,
		Max: req.MaxBytes, Text: req.Text}
	page, err := within(r, at{req.Workspace, req.Digest}, func(fs *root) (openat2fs.Page, error) { return fs.Read(ctx, path, asked) })
	if err != nil {
		return files.ReadResult{}, err
	}
	return files.ReadResult{Content: page.Content, Version: page.Version, Size: page.Stat.Size, Offset: page.Offset, Next: page.Next,
		Line: page.Line, Truncated: page.Truncated}, nil
}

// Find finds paths, a page at a time.
func (r *Runner) Find(ctx context.Context, req files.FindRequest) (files.FindResult, error) {
	asked := openat2fs.Query{Glob: req.Glob, Cursor: req.Cursor, Limit: req.Limit}
	found, err := within(r, at{req.Workspace, req.Digest}, func(fs *root) (openat2fs.Found, error) { return fs.Find(ctx, asked) })
	if err != nil {
		return files.FindResult{}, err
	}
	out := files.FindResult{Truncated: found.Truncated, Reason: found.Reason, Next: found.Next, Skipped: found.Skipped, Paths: make([]string, len(found.Paths))}
	for i, p := range found.Paths {
		out.Paths[i] = p.String()
	}
	return out, nil
}

// Versions looks at paths, in their order.
func (r *Runner) Versions(ctx context.Context, req files.VersionsRequest) ([]files.Version, error) {
	paths := make([]openat2fs.Path, len(req.Paths))
	for i, p := range req.Paths {
		var err error
		if paths[i], err = openat2fs.ParsePath(p); err != nil {
			return nil, fileFault(err)
		}
	}
	all, err := within(r, at{req.Workspace, req.Digest}, func(fs *root) ([]openat2fs.Versioned, error) { return fs.Versions(ctx, paths) })
	if err != nil {
		return nil, err
	}
	out := make([]files.Version, len(all))
	for i, v := range all {
		out[i] = files.Version{Path: v.Path.String(), Version: v.Version, Size: v.Stat.Size, Mode: v.Stat.Mode, Kind: string(v.Stat.Kind)}
		if v.Err != nil {
			out[i].Error = string(v.Err.Code)
		}
	}
	return out, nil
}

var fileAdvice = map[openat2fs.Code]string{
	openat2fs.InvalidArgument:     "correct the argument",
	openat2fs.PathEscape:          "name a path below the workspace, relative to it, without . and ..",
	openat2fs.FileNotFound:        "look with find for what is there",
	openat2fs.PathNotDirectory:    "something on the way is no directory; look with version",
	openat2fs.SymlinkRejected:     "links are not followed; name the file itself if it lies in the workspace",
	openat2fs.SpecialFileRejected: "only regular files can be read; look with version what it is",
	openat2fs.FileTooLarge:        "read a part of it with a command",
	openat2fs.PathContended:       "try again once nothing changes it",
	openat2fs.FileOperationFailed: "see the reason; a command may be able to say more",
}

// fileFault turns an error of the files into what a client is told: it has no path
// but the workspace's own.
func fileFault(err error) error {
	var e *openat2fs.Error
	if !errors.As(err, &e) {
		return err // also none
	}
	f := &Fault{Code: Code(e.Code), Message: e.Error(), Next: fileAdvice[e.Code], Retryable: e.Retryable(), Details: map[string]any{"path": e.Path}}
	if e.Reason != "" {
		f.Details["reason"] = e.Reason
	}
	if e.Code == openat2fs.PathEscape && e.Reason == "mount" {
		f.Next = "leave it: what is mounted below a workspace is no part of it"
	}
	return f
}
