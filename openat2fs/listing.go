package openat2fs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// listing is what one directory holds that the page may need: its keys, sorted. Of
// a very large directory it is the smallest part, and the directory is read again
// for the next.
type listing struct {
	names   []byte // the keys, one behind the other
	entries []entry
	more    bool   // keys behind last were left out
	last    []byte // the largest key kept, if more
	// unwanted counts the entries that the page has looked at and needs no more.
	unwanted int
}

// entry is one key. head is its first 8 bytes, for comparing.
type entry struct {
	head   uint64
	at     uint32
	length uint16
}

// What a listing keeps while it is read; half of it stays when there is more.
// With one listing for each depth, a page takes at most 64 times 2 MiB.
const (
	maxNames   = 1 << 20 // bytes
	maxEntries = 1 << 16
)

// errTime is the answer of read when the time of the page is over.
var errTime = errors.New("out of time")

// One getdents64 call takes this much: the kernel's work is per call as well as
// per entry.
const direntBytes = 128 << 10

var dirents = sync.Pool{New: func() any { return new([direntBytes]byte) }}

// read lists the directory w.dir from the key low on, keeping what may match or
// hold a match at these places of the glob. The error is a unix.Errno, errTime or
// the context's.
func (l *listing) read(w *walk, at *places, low string) error {
	l.names, l.entries, l.more, l.unwanted = l.names[:0], l.entries[:0], false, 0
	name := "."
	if len(w.dir) > 0 {
		name = string(w.dir[:len(w.dir)-1])
	}
	fd, err := lookup{dir: w.root.fd, name: name, flags: unix.O_RDONLY | directory}.open()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	buf := dirents.Get().(*[direntBytes]byte)
	defer dirents.Put(buf)
	f := &filter{walk: w, at: at, low: low, fd: fd}
	for {
		if err := w.ctx.Err(); err != nil {
			return ended(name, err)
		}
		if time.Now().After(w.deadline) {
			return errTime
		}
		n, err := unix.Getdents(fd, buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		l.take(buf[:n], f)
	}
	l.sort()
	return nil
}

// filter says which entries a listing keeps.
type filter struct {
	walk *walk
	at   *places
	low  string
	fd   int
}

// take keeps what is wanted of a buffer of entries.
func (l *listing) take(buf []byte, f *filter) {
	for len(buf) > 0 {
		var e dirent
		if e, buf = nextDirent(buf); e.name != nil {
			l.consider(e.name, e.kind, f)
		}
	}
}

func (l *listing) consider(name []byte, kind byte, f *filter) {
	before := len(l.names)
	l.names = append(l.names, name...)
	directory := kind == unix.DT_DIR || kind == unix.DT_UNKNOWN && f.isDirectory(name)
	if directory {
		l.names = append(l.names, '/')
	}
	key := l.names[before:]
	if f.earlier(key) {
		l.names = l.names[:before]
		return
	}
	if !f.wanted(name, directory) {
		l.unwanted++
		l.names = l.names[:before]
		return
	}
	if l.more && bytes.Compare(key, l.last) > 0 {
		l.names = l.names[:before]
		return
	}
	l.entries = append(l.entries, entry{head(key), uint32(before), uint16(len(key))})
	if len(l.names) > maxNames || len(l.entries) > maxEntries {
		l.halve()
	}
}

// earlier: nothing of this key's belongs to the page.
func (f *filter) earlier(key []byte) bool {
	if f.low == "" || string(key) >= f.low {
		return false
	}
	return key[len(key)-1] != '/' || len(key) > len(f.low) || string(key) != f.low[:len(key)]
}

func (f *filter) wanted(name []byte, directory bool) bool {
	if directory {
		below := f.walk.glob.directory(f.at, name)
		return !below.empty()
	}
	return isTemporary(name) == f.walk.temporaries && f.walk.glob.file(f.at, name)
}

// isDirectory asks where the file system does not say (DT_UNKNOWN).
func (f *filter) isDirectory(name []byte) bool {
	st, err := source{dir: f.fd, name: string(name)}.stat()
	return err == nil && st.Kind == Directory
}

func (l *listing) key(i int) []byte {
	e := l.entries[i]
	return l.names[e.at : int(e.at)+int(e.length)]
}

// head orders keys by their first 8 bytes; what is shorter is filled with NULs,
// which no name has.
func head(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

func (l *listing) sort() {
	slices.SortFunc(l.entries, func(a, b entry) int {
		if a.head != b.head {
			if a.head < b.head {
				return -1
			}
			return 1
		}
		return bytes.Compare(l.names[a.at:int(a.at)+int(a.length)], l.names[b.at:int(b.at)+int(b.length)])
	})
}

// halve leaves out the larger half of the keys.
func (l *listing) halve() {
	l.sort()
	l.entries = l.entries[:len(l.entries)/2]
	names := make([]byte, 0, maxNames+maxNameBytes+1)
	for i := range l.entries {
		key := l.key(i)
		l.entries[i].at = uint32(len(names))
		names = append(names, key...)
	}
	l.names, l.more = names, true
	l.last = append(l.last[:0], l.key(len(l.entries)-1)...)
}

// behind is the smallest key that can follow those kept: for a directory behind
// everything below it.
func (l *listing) behind() string {
	if n := len(l.last) - 1; l.last[n] == '/' {
		return string(l.last[:n]) + "0" // the byte behind the slash
	}
	return string(l.last) + "\x00"
}
