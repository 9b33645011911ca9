// Package files is what is asked and answered about the files of a workspace, as it
// crosses the runner socket. Nothing is done here: runner does, beneath the one
// directory handle that openat2fs holds of each workspace.
package files

import "codespace/runner/patching"

// ReadRequest asks for a part of one file: bytes, or lines where StartLine is not 0.
type ReadRequest struct {
	Workspace string `json:"workspace_id"`
	Digest    string `json:"policy_digest"`
	Path      string `json:"path"`
	Offset    int64  `json:"offset,omitempty"`
	Length    int64  `json:"length,omitempty"` // 0: to the end
	StartLine int64  `json:"start_line,omitempty"`
	LineCount int64  `json:"line_count,omitempty"` // 0: to the end
	MaxBytes  int64  `json:"max_bytes"`            // of the part
	Text      bool   `json:"text,omitempty"`       // split no UTF-8 sequence
}

// ReadResult is a part of a file, and the version of the whole that it is a part of.
type ReadResult struct {
	Content   []byte `json:"-"` // exact bytes
	Version   string `json:"version"`
	Size      int64  `json:"size"`
	Offset    int64  `json:"offset"`
	Next      int64  `json:"next"`           // the offset behind the part
	Line      int64  `json:"line,omitempty"` // of its first line, where lines were asked for
	Truncated bool   `json:"truncated"`      // more was asked for, and there
}

// FindRequest asks which paths a doublestar glob matches, "" being all.
type FindRequest struct {
	Workspace string `json:"workspace_id"`
	Digest    string `json:"policy_digest"`
	Glob      string `json:"glob,omitempty"`
	Cursor    string `json:"cursor,omitempty"`
	Limit     int    `json:"limit,omitempty"`
}

// FindResult is one page of paths, sorted by their bytes, which need not be UTF-8.
type FindResult struct {
	Paths     []string `json:"-"`
	Truncated bool     `json:"truncated"`
	Reason    string   `json:"reason,omitempty"` // of the truncation: which limit
	Next      string   `json:"next,omitempty"`   // the cursor of the next page
	Skipped   int      `json:"skipped,omitempty"`
}

// VersionsRequest asks what stands at each of some paths.
type VersionsRequest struct {
	Workspace string   `json:"workspace_id"`
	Digest    string   `json:"policy_digest"`
	Paths     []string `json:"paths"`
}

// Version is what stands at a path. Version is "absent" where nothing does and ""
// where what does has none: Error says why, if it is not its kind.
type Version struct {
	Path    string `json:"path"`
	Version string `json:"version,omitempty"`
	Size    int64  `json:"size,omitempty"`
	Mode    uint32 `json:"mode,omitempty"`  // permission bits
	Kind    string `json:"kind,omitempty"`  // file, directory, link, fifo, socket, device
	Error   string `json:"error,omitempty"` // the code of why there is no version
}

// PatchRequest asks what a patch would do to a workspace. Nothing is changed by it.
type PatchRequest struct {
	Workspace string            `json:"workspace_id"`
	Digest    string            `json:"policy_digest"`
	Patch     []byte            `json:"-"`
	Expected  map[string]string `json:"expected_versions,omitempty"` // by path
	ID        string            `json:"plan_id,omitempty"`           // of the plan, which is kept; "": it is only asked for
}

// SettleRequest asks to bring to an end what a patch of that plan has left.
type SettleRequest struct {
	Workspace string           `json:"workspace_id"`
	Digest    string           `json:"policy_digest"`
	Planned   patching.Planned `json:"planned"`
}
