// Package patching is how a runner talks to a patch helper: what is asked and
// answered about one patch, and the frames that carry it over a socket pair.
//
//	runner                                     helper (codespace-patch)
//	  Setup{identity, filter} + root ─────────▶  locks itself down
//	  ◀──────────────────────────────── Answer
//	  Plan{patch, expected versions} + lease ─▶  reads, writes nothing
//	  ◀────────────── Answer{edits} or a fault
//	  Apply ──────────────────────────────────▶  changes all files, or none
//	  ◀──────────────────────────────── Answer{outcome}
//
// Instead of Plan and Apply, Settle{edits} brings to an end what a helper that died
// has left. Each helper serves one patch of one workspace.
//
// The plan is the journal of a patch: it names every file with its versions before
// and after, and beside each file the temporary that will hold the new content and
// then the old. It is recorded before anything is written; with it and the disk
// alone everything can be completed or undone.
//
// Descriptors that come with Plan or Settle mean nothing to the helper: it holds them
// open until it has ended the patch or is gone, so that others see that.
package patching

// The limits of one patch in a workspace.
const (
	MaxBytes     = 8 << 20  // of its text
	MaxFiles     = 1000     // that it names
	MaxFileBytes = 64 << 20 // of one file, before and after
)

// Setup is the first request, with the root's descriptor (O_PATH).
type Setup struct {
	UID       int      `json:"uid"` // -1: stay who it is
	GID       int      `json:"gid"`
	Filter    []byte   `json:"filter"`    // seccomp program: struct sock_filter in the machine's byte order
	Protected []string `json:"protected"` // patterns of paths that no patch may touch
	Limits    Limits   `json:"limits"`
}

// Limits bound one patch.
type Limits struct {
	Files     int   `json:"files"`      // paths that are touched
	FileBytes int64 `json:"file_bytes"` // of one file, before and after
}

// Plan asks what a patch would do. Expected maps paths to the versions that they must
// have now, "absent" among them. The patch is the body of the frame.
type Plan struct {
	Expected map[string]string `json:"expected_versions,omitempty"`
}

// Change is what becomes of one file, as a client sees it.
type Change struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"`           // add, update, delete, move
	From   string `json:"from,omitempty"` // the path before a move
	Before string `json:"before_version,omitempty"`
	After  string `json:"after_version,omitempty"`
	Mode   uint32 `json:"mode,omitempty"` // permission bits afterwards
}

// Edit is one path whose content changes: a move is two. Temp is the name, in the
// same directory, of the file that holds the new content until it is in place and
// from then on the old.
type Edit struct {
	Path   string `json:"path"`
	Temp   string `json:"temp"`
	Before string `json:"before"` // version, or "absent"
	After  string `json:"after"`
}

// Planned is all that a patch will do.
type Planned struct {
	Changes []Change `json:"changes"`
	Edits   []Edit   `json:"edits"`
	Made    []string `json:"made,omitempty"` // directories that are missing, outermost first
	Root    uint64   `json:"root"`           // inode of the directory that it is for
}

// Status is how a patch ended.
type Status string

const (
	Applied    Status = "applied"
	RolledBack Status = "failed_rolled_back"
	Partial    Status = "failed_partial"
	Unknown    Status = "unknown" // of a patch that was interrupted
)

// Outcome is how a patch ended on the disk, which was looked at to say so. Cause is
// why it was not applied. Facts are the paths that are neither as they were nor as
// they should be: somebody else has changed them.
type Outcome struct {
	Status Status `json:"status"`
	Cause  *Fault `json:"cause,omitempty"`
	Facts  []Fact `json:"facts,omitempty"`
}

// Fact is a path that could not be brought back.
type Fact struct {
	Path    string `json:"path"`
	Found   string `json:"found"`          // version, "absent", or the kind of what is no file
	Kept    string `json:"kept,omitempty"` // path of the file that holds what stood there before
	Because string `json:"because"`
}

// Fault is why a request was refused; the codes are those of the contract.
type Fault struct {
	Code      string         `json:"code"`
	Message   string         `json:"message"`
	Next      string         `json:"next,omitempty"`
	Retryable bool           `json:"retryable,omitempty"`
	Details   map[string]any `json:"details,omitempty"`
}

func (f *Fault) Error() string { return f.Code + ": " + f.Message }

// Request is one frame to a helper; exactly one field is set.
type Request struct {
	Setup  *Setup   `json:"setup,omitempty"`
	Plan   *Plan    `json:"plan,omitempty"`
	Apply  bool     `json:"apply,omitempty"`
	Settle *Planned `json:"settle,omitempty"`
}

// Answer is one frame back.
type Answer struct {
	Fault   *Fault   `json:"fault,omitempty"`
	Planned *Planned `json:"planned,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
}
