package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"codespace/runner/files"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// lookedAt measures what is asked about files, at the runner.
func lookedAt(ctx context.Context, r report, o options, g *grounds) error {
	if err := fill(g.embedded.workspace.Root, o.files); err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Join(g.embedded.workspace.Root, "tree"))
	runner, err := g.embedded.startRunner(ctx)
	if err != nil {
		return err
	}
	defer runner.close()
	some := min(o.files, 10_000)
	for _, s := range []section{
		{title: fmt.Sprintf("find, over %d files", o.files), n: o.cold, block: 1, gap: gap,
			subjects: o.chosen(listing(g.embedded.place), runner.finding(o.files))},
		{title: fmt.Sprintf("read of %d small files, one after the other", some), n: o.cold, block: 1, gap: gap,
			subjects: o.chosen(readingFiles(g.embedded.place, some), runner.reading(some))},
	} {
		if err := s.show(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

const perDirectory = 100

func small(i int) string {
	return fmt.Sprintf("tree/%03d/%03d/file-%06d.txt", i/perDirectory/perDirectory, i/perDirectory%perDirectory, i)
}

// fill makes many files of a few hundred bytes.
func fill(root string, n int) error {
	content := []byte(strings.Repeat("a line of a file\n", 20))
	for i := range n {
		file := filepath.Join(root, small(i))
		if i%perDirectory == 0 {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// listing is the baseline of find: the fastest lister that is here.
func listing(at place) *subject {
	argv := []string{"rg", "--files"}
	if _, err := exec.LookPath("rg"); err != nil {
		argv = []string{"find", ".", "-type", "f"}
	}
	return &subject{name: fmt.Sprintf("%s, its start included (the baseline)", strings.Join(argv, " ")), sample: func(ctx context.Context, w *stopwatch) error {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir = at.workspace.Root
		w.start()
		out, err := cmd.Output()
		w.lap("listed")
		if len(out) == 0 {
			err = errors.Join(err, errors.New("nothing was listed"))
		}
		return err
	}}
}

func (r *runnerSide) finding(n int) *subject {
	return &subject{name: "find at the runner, page by page", sample: func(ctx context.Context, w *stopwatch) error {
		req := files.FindRequest{Workspace: r.workspace.ID, Digest: r.grant.Digest, Glob: "tree/**"}
		found := 0
		w.start()
		for more := true; more; more = req.Cursor != "" {
			page, err := r.child.Client.Find(ctx, req)
			if err != nil {
				return err
			}
			found, req.Cursor = found+len(page.Paths), page.Next
		}
		w.lap("found")
		if found != n {
			return fmt.Errorf("%d files of %d were found", found, n)
		}
		return nil
	}}
}

func readingFiles(at place, n int) *subject {
	return &subject{name: "os.ReadFile (the baseline)", sample: func(_ context.Context, w *stopwatch) error {
		w.start()
		for i := range n {
			if _, err := os.ReadFile(filepath.Join(at.workspace.Root, small(i))); err != nil {
				return err
			}
		}
		w.lap("read")
		return nil
	}}
}

func (r *runnerSide) reading(n int) *subject {
	return &subject{name: "read at the runner, with the hash of each", sample: func(ctx context.Context, w *stopwatch) error {
		w.start()
		for i := range n {
			got, err := r.child.Client.ReadFile(ctx, files.ReadRequest{Workspace: r.workspace.ID, Digest: r.grant.Digest, Path: small(i), MaxBytes: 65536})
			if err != nil {
				return err
			}
			if got.Version == "" {
				return errors.New("a file was read without its version")
			}
		}
		w.lap("read")
		return nil
	}}
}

// patches measures a patch as an agent sees it, against the same writes by hand: each
// file written, synced and renamed, its directory synced, and one commit of a database.
func patches(ctx context.Context, r report, o options, g *grounds) error {
	m, err := startMCP(ctx, g.embedded)
	if err != nil {
		return err
	}
	defer m.close()
	for _, files := range []int{1, o.patched} {
		n := o.n
		if files > 1 {
			n = o.cold
		}
		byHand, err := newHand(g.embedded.place, files)
		if err != nil {
			return err
		}
		s := section{title: fmt.Sprintf("patch of %d files, on the disk", files), n: n, block: 1, pace: o.pace,
			subjects: o.chosen(byHand.subject(), m.patching(files))}
		err = s.show(ctx, r)
		byHand.db.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// hand writes files as a careful program would.
type hand struct {
	dir   string
	files int
	turn  int
	db    *sql.DB
}

func newHand(at place, files int) (*hand, error) {
	h := &hand{dir: filepath.Join(at.workspace.Root, "hand"), files: files}
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	h.db, err = sql.Open("sqlite", "file:"+filepath.Join(at.workspace.Root, "hand.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err == nil {
		_, err = h.db.Exec("CREATE TABLE IF NOT EXISTS done (turn INTEGER)")
	}
	return h, err
}

func (h *hand) subject() *subject {
	return &subject{name: "write, fsync, rename, fsync of the directory, one SQLite commit (the baseline)", sample: func(_ context.Context, w *stopwatch) error {
		h.turn++
		w.start()
		for i := range h.files {
			if err := replace(filepath.Join(h.dir, fmt.Sprint(i)), []byte(fmt.Sprintf("turn %d\nof a file\n", h.turn))); err != nil {
				return err
			}
		}
		dir, err := os.Open(h.dir)
		if err == nil {
			err = errors.Join(dir.Sync(), dir.Close())
		}
		if err == nil {
			_, err = h.db.Exec("INSERT INTO done VALUES (?)", h.turn)
		}
		w.lap("written")
		return err
	}}
}

func replace(file string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// patching changes the same files in every sample.
func (m *mcpSide) patching(n int) *subject {
	turn := 0
	return &subject{name: "apply_patch, over MCP (stdio)", sample: func(_ context.Context, w *stopwatch) error {
		var patch strings.Builder
		patch.WriteString("*** Begin Patch\n")
		for i := range n {
			file := fmt.Sprintf("patched-%d/%d", n, i)
			if turn == 0 {
				fmt.Fprintf(&patch, "*** Add File: %s\n+turn 1\n+of a file\n", file)
			} else {
				fmt.Fprintf(&patch, "*** Update File: %s\n@@\n-turn %d\n+turn %d\n of a file\n", file, turn, turn+1)
			}
		}
		patch.WriteString("*** End Patch\n")
		turn++
		w.start()
		_, err := m.call("apply_patch", map[string]any{"workspace_id": m.workspace.ID, "patch": patch.String()})
		w.lap("applied")
		return err
	}}
}
