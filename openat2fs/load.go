package openat2fs

import (
	"context"
	"slices"
)

// Load appends the whole content of a regular file to buf and does not hash it:
// VersionOf does. Content and Stat are of one moment, as far as the kernel tells.
// Errors are those of Read.
func (r *Root) Load(ctx context.Context, p Path, buf []byte) ([]byte, Stat, error) {
	if err := r.enter(ctx); err != nil {
		return buf, Stat{}, err
	}
	defer r.leave()
	return r.at(p).load(ctx, buf, r.limits.HashBytes)
}

func (s source) load(ctx context.Context, buf []byte, limit int64) ([]byte, Stat, error) {
	whole := buf
	st, err := s.settled(ctx, func(fd int, st Stat) (err error) {
		whole, err = s.all(ctx, buf, opened{fd, st.Size, limit})
		return err
	})
	if err != nil {
		return buf, st, err
	}
	return whole, st, nil
}

type opened struct {
	fd          int
	size, limit int64
}

func (s source) all(ctx context.Context, buf []byte, f opened) ([]byte, error) {
	if err := s.tooLarge(f.size, f.limit); err != nil {
		return buf, err
	}
	start := len(buf)
	buf = slices.Grow(buf, int(f.size)+1) // the byte more shows the end
	for {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, chunkBytes)
		}
		// In pieces, so that a context ends a long read.
		room := buf[len(buf):min(cap(buf), len(buf)+8*chunkBytes)]
		n, err := s.next(f.fd, room)
		if err != nil {
			return buf, err
		}
		buf = buf[:len(buf)+n]
		total := int64(len(buf) - start)
		if err := s.tooLarge(total, f.limit); err != nil {
			return buf, err
		}
		if n == 0 || n < len(room) && total == f.size {
			return buf, nil
		}
		if err := ctx.Err(); err != nil {
			return buf, ended(s.path, err)
		}
	}
}
