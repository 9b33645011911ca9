package patch

import (
	"errors"
	"io/fs"

	"codespace/openat2fs"
	"codespace/openat2fs/v4a"
	"codespace/runner/patching"
)

func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// taken: something is there already or, for a directory, in it.
func taken(err error) bool { return errors.Is(err, fs.ErrExist) }

// gone: a path does not lead to its directory any more, which was removed or replaced.
func gone(err error) bool {
	switch codeOf(err) {
	case openat2fs.FileNotFound, openat2fs.PathNotDirectory, openat2fs.SymlinkRejected, openat2fs.PathEscape:
		return true
	}
	return false
}

func codeOf(err error) openat2fs.Code {
	var e *openat2fs.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// faultOf is an error as it crosses to the runner. What has no code of its own is told
// there as one of the machine.
func faultOf(err error) *patching.Fault {
	var fault *patching.Fault
	var in *v4a.Error
	var at *openat2fs.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &in):
		return refused(in)
	case errors.As(err, &at):
		f := &patching.Fault{Code: string(at.Code), Message: at.Error(), Retryable: at.Retryable(), Details: map[string]any{"path": at.Path}}
		if at.Reason != "" {
			f.Details["reason"] = at.Reason
		}
		return f
	}
	return &patching.Fault{Code: string(openat2fs.FileOperationFailed), Message: err.Error()}
}

func refused(e *v4a.Error) *patching.Fault {
	f := &patching.Fault{Code: string(e.Code), Message: e.Reason(), Next: e.Next, Details: map[string]any{"line": e.Line}}
	if e.Path != "" {
		f.Details["path"] = e.Path
	}
	if e.Chunk > 0 {
		f.Details["chunk"] = e.Chunk
	}
	if e.Total > 0 {
		f.Details["matches"], f.Details["matches_total"] = e.Matches, e.Total
	}
	if len(e.Sought) > 0 {
		f.Details["sought"] = e.Sought
	}
	if e.Nearest > 0 {
		f.Details["nearest_line"], f.Details["differs_line"] = e.Nearest, e.Differs
	}
	return f
}
