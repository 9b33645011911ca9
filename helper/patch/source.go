package patch

import (
	"context"
	"io/fs"

	"codespace/openat2fs"
)

// workspace is the files of the root as the planner sees them.
type workspace struct {
	ctx  context.Context
	root *openat2fs.Root
	seen map[string]openat2fs.Stat // of what was read
}

// Stat is the type and permissions of what is at a path.
func (w *workspace) Stat(path string) (fs.FileMode, error) {
	p, err := openat2fs.ParsePath(path)
	if err != nil {
		return 0, err
	}
	st, err := w.root.Stat(w.ctx, p)
	if err != nil {
		return 0, err
	}
	return fs.FileMode(st.Mode&0o777) | types[st.Kind], nil
}

var types = map[openat2fs.Kind]fs.FileMode{
	openat2fs.File: 0, openat2fs.Directory: fs.ModeDir, openat2fs.Link: fs.ModeSymlink, openat2fs.FIFO: fs.ModeNamedPipe,
	openat2fs.Socket: fs.ModeSocket, openat2fs.Device: fs.ModeDevice, openat2fs.Unknown: fs.ModeIrregular,
}

// Read is the content of a regular file. Its size is bounded by the root's limit; what
// is over the planner's is the planner's to refuse.
func (w *workspace) Read(path string, _ int) ([]byte, error) {
	p, err := openat2fs.ParsePath(path)
	if err != nil {
		return nil, err
	}
	content, st, err := w.root.Load(w.ctx, p, nil)
	if err == nil {
		w.seen[path] = st
	}
	return content, err
}
