package openat2fs

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// Code is a stable error code of the contract; it crosses process boundaries.
type Code string

const (
	InvalidArgument     Code = "INVALID_ARGUMENT"      // a path, range, glob or cursor that cannot be meant
	PathEscape          Code = "PATH_ESCAPE"           // it leads out of the workspace; Reason "mount": over a mount below it
	FileNotFound        Code = "FILE_NOT_FOUND"        // nothing is there
	PathNotDirectory    Code = "PATH_NOT_DIRECTORY"    // a component that must be a directory is something else
	SymlinkRejected     Code = "SYMLINK_REJECTED"      // a component is a link, wherever it leads
	SpecialFileRejected Code = "SPECIAL_FILE_REJECTED" // no regular file; Reason is the kind, "directory" among them
	FileTooLarge        Code = "FILE_TOO_LARGE"        // over the limit of what is hashed
	PathContended       Code = "PATH_CONTENDED"        // it was changed as often as it was tried; a later try may succeed
	FileOperationFailed Code = "FILE_OPERATION_FAILED" // anything else the kernel refused: see the errno
)

// Error is what every call here fails with, unless its context ended: then the
// error wraps the context's.
type Error struct {
	Code   Code
	Op     string     // what was tried: "open", "read", ...
	Path   string     // relative to the root, as asked for; "." is the root
	Reason string     // "" where code and errno say it all
	Errno  unix.Errno // 0 where no call failed
}

// shownBytes bounds how much of a path an error repeats.
const shownBytes = 512

func (e *Error) Error() string {
	shown := e.Path
	if len(shown) > shownBytes {
		shown = shown[:shownBytes] + "..."
	}
	s := fmt.Sprintf("cannot %s %s", e.Op, strconv.Quote(shown))
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	if e.Errno != 0 {
		s += ": " + e.Errno.Error()
	}
	return s
}

// Unwrap is the errno, so that errors.Is finds fs.ErrExist and its kin.
func (e *Error) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// Retryable says whether the same call may succeed later by itself.
func (e *Error) Retryable() bool { return e.Code == PathContended }

// fail makes an *Error of what a system call answered.
func fail(op, path string, err error) *Error {
	errno, ok := err.(unix.Errno)
	if !ok {
		return &Error{Code: FileOperationFailed, Op: op, Path: path, Reason: err.Error()}
	}
	e := &Error{Code: FileOperationFailed, Op: op, Path: path, Errno: errno}
	switch errno {
	case unix.ENOENT:
		e.Code = FileNotFound
	case unix.ENOTDIR:
		e.Code = PathNotDirectory
	case unix.ELOOP:
		// Not a loop: what RESOLVE_NO_SYMLINKS answers to any link (openat2(2)).
		e.Code = SymlinkRejected
	case unix.EXDEV:
		// No Path can lead up and no link is followed, so that only a mount is
		// left: see lookup.open for the other cause.
		e.Code, e.Reason = PathEscape, "mount"
	case unix.EAGAIN:
		e.Code = PathContended
	case unix.ENAMETOOLONG:
		e.Code = InvalidArgument
	case unix.ENOSYS:
		e.Reason = "the kernel or a filter of system calls lacks it"
	}
	return e
}

// exhausted: not the file is at fault but the machine, and the next file would
// fare no better.
func exhausted(errno unix.Errno) bool {
	return errno == unix.EMFILE || errno == unix.ENFILE || errno == unix.ENOMEM
}
