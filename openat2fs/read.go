package openat2fs

import (
	"cmp"
	"context"
)

// pageBytes is the most a page holds where Range.Max does not say.
const pageBytes = 65_536

// Range is the part of a file that is asked for: bytes, or lines where StartLine
// is not 0. A line ends with its LF; the last one may lack it.
type Range struct {
	Offset int64 // of the first byte
	Length int64 // bytes; 0: to the end
	// StartLine counts from 1. LineCount 0 is to the end.
	StartLine, LineCount int64
	// Max is the most bytes of the page, whatever was asked; 0 is pageBytes.
	Max int64
	// Text keeps the end of a page from splitting a UTF-8 sequence: the page is
	// shorter, or, where that would leave nothing, up to 3 bytes longer.
	Text bool
}

// Page is a part of a file, and the version of the whole of it.
type Page struct {
	Content   []byte // the file's own bytes, also where they are not UTF-8
	Offset    int64  // of the first byte
	Next      int64  // Offset behind the last byte; the Size at the end of the file
	Line      int64  // number of the first line; 0 where bytes were asked for
	Truncated bool   // more was asked for, and there, than the page holds
	Version   string
	Stat      Stat
}

// Read reads a regular file once, whole, and is the asked part of it, with the
// version of what was read. A range that begins beyond the end is
// INVALID_ARGUMENT, at the end an empty page. Anything but a regular file is
// SPECIAL_FILE_REJECTED or SYMLINK_REJECTED at once, never a wait.
func (r *Root) Read(ctx context.Context, p Path, asked Range) (Page, error) {
	asked.Max = min(cmp.Or(asked.Max, pageBytes), r.limits.HashBytes)
	if !asked.meant() {
		return Page{}, &Error{Code: InvalidArgument, Op: "read", Path: p.String(), Reason: "its range is negative, or names bytes and lines"}
	}
	if err := r.enter(ctx); err != nil {
		return Page{}, err
	}
	defer r.leave()
	at := r.at(p)
	var version string
	var got collector
	st, err := at.settled(ctx, func(fd int, st Stat) (err error) {
		got = collector{asked: asked, line: 1}
		version, err = at.digest(ctx, fd, st, reading{r.limits.HashBytes, got.take})
		return err
	})
	if err != nil {
		return Page{}, err
	}
	page, ok := got.page()
	if !ok {
		return Page{}, &Error{Code: InvalidArgument, Op: "read", Path: p.String(), Reason: "the range begins beyond the end of the file"}
	}
	page.Version, page.Stat = version, st
	return page, nil
}

func (a Range) meant() bool {
	lines := a.StartLine != 0 || a.LineCount != 0
	bytes := a.Offset != 0 || a.Length != 0
	return min(a.Offset, a.Length, a.StartLine, a.LineCount, a.Max) >= 0 &&
		!(lines && bytes) && (a.LineCount == 0 || a.StartLine != 0)
}
