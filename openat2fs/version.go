package openat2fs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"sync"
)

// Absent is the version of a path where nothing is.
const Absent = "absent"

// VersionOf is the version of a file with this content: "sha256:" and hex.
func VersionOf(content []byte) string {
	sum := sha256.Sum256(content)
	return written(sum[:])
}

func written(sum []byte) string {
	text := make([]byte, 0, 7+2*sha256.Size)
	return string(hex.AppendEncode(append(text, "sha256:"...), sum))
}

// Versioned is what stands at one of several paths.
type Versioned struct {
	Path    Path
	Version string // of a regular file; Absent; "" for anything else, and with Err
	Stat    Stat   // zero where nothing is or nothing could be learned
	Err     *Error // why there is no version; nil for a directory, link or special file
}

// Versions looks at paths in their order, hashing regular files. The error is only
// the context's, the root's (closed) or one of the machine (no descriptor or
// memory left); what is wrong with one path stands beside it.
func (r *Root) Versions(ctx context.Context, paths []Path) ([]Versioned, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.leave()
	all := make([]Versioned, 0, len(paths))
	for _, p := range paths {
		v, err := r.versioned(ctx, p)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func (r *Root) versioned(ctx context.Context, p Path) (Versioned, error) {
	v, at := Versioned{Path: p}, r.at(p)
	st, err := at.settled(ctx, func(fd int, st Stat) (err error) {
		v.Version, err = at.digest(ctx, fd, st, reading{limit: r.limits.HashBytes})
		return err
	})
	v.Stat = st
	var e *Error
	switch {
	case err == nil:
	case !errors.As(err, &e) || exhausted(e.Errno):
		return v, err
	case e.Code == FileNotFound:
		v = Versioned{Path: p, Version: Absent}
	case st.Kind != "" && st.Kind != File:
		v.Version = ""
	default:
		v.Version, v.Err = "", e
	}
	return v, nil
}

// reading is what happens to a file's bytes besides being hashed.
type reading struct {
	limit int64
	take  func(chunk []byte) // nil: nothing
}

// chunkBytes is read at a time: most source files come in one piece.
const chunkBytes = 128 << 10

var chunks = sync.Pool{New: func() any { return new([chunkBytes]byte) }}

// digest reads the whole of an open file in pieces and is its version.
func (s source) digest(ctx context.Context, fd int, st Stat, to reading) (string, error) {
	if err := s.tooLarge(st.Size, to.limit); err != nil {
		return "", err
	}
	chunk := chunks.Get().(*[chunkBytes]byte)
	defer chunks.Put(chunk)
	var long hash.Hash // only where the file does not come in one piece
	for total := int64(0); ; {
		n, err := s.next(fd, chunk[:])
		if err != nil {
			return "", err
		}
		if to.take != nil {
			to.take(chunk[:n])
		}
		total += int64(n)
		if err := s.tooLarge(total, to.limit); err != nil {
			return "", err
		}
		// A read shorter than asked for that ends at the size is the end; without
		// either (sizes may be wrong, FUSE) only an empty read is.
		last := n == 0 || n < chunkBytes && total == st.Size
		if last && long == nil {
			return VersionOf(chunk[:n]), nil
		}
		if long == nil {
			long = sha256.New()
		}
		long.Write(chunk[:n])
		if last {
			return written(long.Sum(nil)), nil
		}
		if err := ctx.Err(); err != nil {
			return "", ended(s.path, err)
		}
	}
}
