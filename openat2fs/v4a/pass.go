package v4a

import (
	"bytes"
	"hash/maphash"
	"slices"
	"unicode/utf8"
)

// pass is one way of comparing lines, the strictest first. Two lines are equal in
// a pass when their keys are.
type pass int

const (
	exact pass = iota
	rightTrimmed
	trimmed
	folded
	passes
)

// key is what a pass compares of a line. A line that is not UTF-8 is compared as it
// is in every pass: what is white space or a dash in it nobody knows. The key is a
// part of line, or is in scratch, which grows as it must.
func (p pass) key(line []byte, scratch *[]byte) []byte {
	if p == exact || !utf8.Valid(line) {
		return line
	}
	switch p {
	case rightTrimmed:
		return bytes.TrimRightFunc(line, space)
	case trimmed:
		return bytes.TrimSpace(line)
	}
	line = bytes.TrimSpace(line)
	if ascii(line) {
		return line
	}
	*scratch = fold(line, slices.Grow((*scratch)[:0], len(line)))
	return *scratch
}

func ascii(line []byte) bool {
	for _, b := range line {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// fold appends line to out with what a keyboard has for typographic punctuation,
// which is never longer.
func fold(line, out []byte) []byte {
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		line = line[size:]
		out = utf8.AppendRune(out, plain(r))
	}
	return out
}

func plain(r rune) rune {
	switch {
	case r < 0xa0:
		return r
	case r >= 0x2010 && r <= 0x2015 || r == 0x2212:
		return '-'
	case r >= 0x2018 && r <= 0x201b:
		return '\''
	case r >= 0x201c && r <= 0x201f:
		return '"'
	case r == 0xa0 || r >= 0x2002 && r <= 0x200a || r == 0x202f || r == 0x205f || r == 0x3000:
		return ' '
	}
	return r
}

// vocabulary numbers keys, from 0. It holds no copies of them, which for long
// lines a map of strings would, and compares them whole: no edit hangs on a hash.
type vocabulary struct {
	seed  maphash.Seed
	heads map[uint64]int32 // by hash: the newest key with it
	keys  [][]byte
	older []int32 // the next key of the same hash, -1 for none
}

func newVocabulary() *vocabulary {
	return &vocabulary{seed: maphash.MakeSeed(), heads: map[uint64]int32{}}
}

// find is the number of a key, -1 for none.
func (v *vocabulary) find(key []byte) int32 {
	n, _ := v.lookup(key)
	return n
}

func (v *vocabulary) lookup(key []byte) (int32, uint64) {
	hash := maphash.Bytes(v.seed, key)
	n, ok := v.heads[hash]
	if !ok {
		return -1, hash
	}
	for n >= 0 && !bytes.Equal(v.keys[n], key) {
		n = v.older[n]
	}
	return n, hash
}

// add numbers a key, which must not change.
func (v *vocabulary) add(key []byte) int32 {
	n, hash := v.lookup(key)
	if n >= 0 {
		return n
	}
	older, ok := v.heads[hash]
	if !ok {
		older = -1
	}
	n = int32(len(v.keys))
	v.keys = append(v.keys, key)
	v.older = append(v.older, older)
	v.heads[hash] = n
	return n
}
