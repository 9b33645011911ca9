package message_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"codespace/sandbox/message"
)

// content is what one field of a message holds, for a model to compare with.
type content struct {
	tag    message.Tag
	text   string
	number uint64
	isText bool
}

// random makes a message and its model.
func random(r *rand.Rand) (message.Message, []content) {
	m := message.Message{Kind: message.Kind(r.Uint32())}
	var fields []content
	for range r.IntN(20) {
		c := content{tag: message.Tag(r.IntN(40)), number: r.Uint64() >> r.IntN(64)}
		switch r.IntN(3) {
		case 0:
			c.isText, c.text = true, strings.Repeat("é/\n x", r.IntN(50))
			m.String(c.tag, c.text)
		case 1:
			c.number = uint64(uint32(c.number))
			m.Uint32(c.tag, uint32(c.number))
		default:
			m.Uint64(c.tag, c.number)
		}
		fields = append(fields, c)
	}
	return m, fields
}

func TestMessageComesBackAsItWas(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		sent, fields := random(r)
		b := sent.Encode()
		got, err := message.Decode(b)
		if err != nil || got.Kind != sent.Kind || !bytes.Equal(got.Encode(), b) {
			t.Fatalf("%x: kind %d, want %d: %v", b, got.Kind, sent.Kind, err)
		}
		seen := map[message.Tag]bool{}
		for _, c := range fields {
			if seen[c.tag] {
				continue // the first field of a tag is the one that is read
			}
			seen[c.tag] = true
			if c.isText && got.Text(c.tag) != c.text || !c.isText && got.Number(c.tag) != c.number {
				t.Fatalf("%+v: %q, %d", c, got.Text(c.tag), got.Number(c.tag))
			}
		}
	}
}

// What is not there, or is something else, reads as nothing.
func TestFieldOfTheWrongForm(t *testing.T) {
	m := message.Message{Kind: message.KindFailed}
	m.Bytes(message.TagReason, []byte("no terminator")).Bytes(message.TagStep, nil)
	m.Bytes(message.TagIndex, []byte{1, 2, 3}).Uint64(message.TagRlimit, 1, 2).String(message.TagCwd, "")
	got, err := message.Decode(m.Encode())
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []message.Tag{message.TagReason, message.TagStep, message.TagCwd, message.TagArg} {
		if text := got.Text(tag); text != "" {
			t.Errorf("tag %d: %q", tag, text)
		}
	}
	for _, tag := range []message.Tag{message.TagIndex, message.TagRlimit, message.TagStep, message.TagArg} {
		if n := got.Number(tag); n != 0 {
			t.Errorf("tag %d: %d", tag, n)
		}
	}
}

// alter changes one 16-bit word of a message.
func alter(b []byte, at int, v uint16) []byte {
	b = bytes.Clone(b)
	binary.NativeEndian.PutUint16(b[at:], v)
	return b
}

func TestDecodeRefuses(t *testing.T) {
	good := new(message.Message).String(message.TagStep, "abc").Encode()
	cases := map[string][]byte{
		"nothing":                  nil,
		"header cut short":         good[:7],
		"wrong magic":              alter(good, 0, 0x1234),
		"older version":            alter(good, 6, 0),
		"newer version":            alter(good, 6, 2),
		"field header cut short":   good[:15],
		"content cut short":        good[:len(good)-1],
		"byte after the last":      append(bytes.Clone(good), 0),
		"reserved word":            alter(good, 10, 1),
		"length beyond the end":    alter(good, 12, 5),
		"length of four gigabytes": alter(alter(good, 12, 0xffff), 14, 0xffff),
	}
	for name, b := range cases {
		if m, err := message.Decode(b); err == nil {
			t.Errorf("%s: accepted as %+v", name, m)
		}
	}
	if _, err := message.Decode(alter(good, 6, 2)); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("another version is not named: %v", err)
	}
	for n := range good {
		if _, err := message.Decode(good[:n]); err == nil && n != 8 {
			t.Errorf("accepted when cut at byte %d", n)
		}
	}
}

// Reading a message costs a small multiple of its length, whatever it claims.
func TestDecodeIsBounded(t *testing.T) {
	m := message.Message{Kind: message.KindLaunch}
	for range message.MaxBytes/8 - 1 {
		m.Bytes(message.TagArg, nil)
	}
	b := m.Encode()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := message.Decode(b); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if cost := after.TotalAlloc - before.TotalAlloc; cost > 32*uint64(len(b)) {
		t.Errorf("%d bytes cost %d to read", len(b), cost)
	}
}

// FuzzDecode: no input panics, and what is accepted is written again as it was:
// there is one spelling of every message.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		m, _ := random(r)
		f.Add(m.Encode())
	}
	f.Add([]byte("CELL\x07\x00\x01\x00\x0d\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := message.Decode(b)
		if err != nil {
			return
		}
		for tag := range message.Tag(32) {
			m.Text(tag)
			m.Number(tag)
		}
		if again := m.Encode(); !bytes.Equal(again, b) {
			t.Fatalf("%x was read and written as %x", b, again)
		}
	})
}
