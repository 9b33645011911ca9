package gateway

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strconv"

	"codespace/runner"
	"codespace/runner/wire"
)

// listPage is the most processes listed at once.
const listPage = 100

// Write gives a process input.
func (g *Gateway) Write(ctx context.Context, p Principal, r runner.WriteRequest) (runner.WriteResult, error) {
	e, err := g.own(p, r.ProcessID)
	if err != nil {
		return runner.WriteResult{}, err
	}
	return e.child.Client.Write(ctx, r)
}

// Resize is the wanted size of a process's terminal.
type Resize struct {
	ProcessID  string
	Rows, Cols int
}

// Resize changes the size of a process's terminal.
func (g *Gateway) Resize(ctx context.Context, p Principal, r Resize) error {
	e, err := g.own(p, r.ProcessID)
	if err != nil {
		return err
	}
	return e.child.Client.Resize(ctx, r.ProcessID, r.Rows, r.Cols)
}

// Page is a part of the list of processes.
type Page struct {
	Processes []Listed
	More      bool // there are others behind these
	Total     int  // of the whole list, with handles that the runner may have given up since
}

// Listed is one process of a list. Cursor continues the list behind it.
type Listed struct {
	runner.Status
	Cursor string
}

// Processes lists p's live and retained processes in order of start, those of one
// workspace if it is named, from behind cursor on.
func (g *Gateway) Processes(ctx context.Context, p Principal, workspace, cursor string) (Page, error) {
	after := uint64(0)
	if cursor != "" {
		var err error
		if after, err = strconv.ParseUint(cursor, 10, 63); err != nil {
			return Page{}, &runner.Fault{Code: runner.InvalidArgument, Message: "cursor is not one that process_list gave", Next: "leave it out to begin anew"}
		}
	}
	if workspace != "" {
		if _, err := g.workspace(p, workspace); err != nil {
			return Page{}, err
		}
	}
	all, child := g.owned(p, workspace)
	page := Page{Total: len(all)}
	rest := all[sort.Search(len(all), func(i int) bool { return all[i].seq > after }):]
	if page.More = len(rest) > listPage; page.More {
		rest = rest[:listPage]
	}
	if len(rest) == 0 {
		return page, nil
	}
	ids, cursors := make([]string, len(rest)), map[string]string{}
	for i, e := range rest {
		ids[i], cursors[e.id] = e.id, strconv.FormatUint(e.seq, 10)
	}
	known, err := child.Client.List(ctx, ids)
	for _, s := range known {
		page.Processes = append(page.Processes, Listed{Status: s, Cursor: cursors[s.ProcessID]})
	}
	return page, err
}

// owned returns p's processes of the running runner in order of start.
func (g *Gateway) owned(p Principal, workspace string) ([]*exec, *wire.Child) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []*exec
	for _, e := range g.execs {
		if e.owner == p && e.child == g.child && (workspace == "" || e.workspace == workspace) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *exec) int { return cmp.Compare(a.seq, b.seq) })
	return all, g.child
}
