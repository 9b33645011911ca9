// Package message is what crosses the process boundaries of a sandbox: SEQPACKET
// channels with descriptors, and the small binary messages that the C side of a
// cell reads and writes (helper/cell/cell.h draws their layout).
//
// It promises bounded messages and no descriptor left open on an error. What the
// messages mean is said in package sandbox.
package message

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Kind and Tag are those of helper/cell/cell.h; a test compares the two files.
type (
	Kind uint16
	Tag  uint16
)

const (
	KindConfig  Kind = 1
	KindReady   Kind = 2
	KindCell    Kind = 3
	KindCloned  Kind = 4
	KindPlaced  Kind = 5
	KindFailed  Kind = 6
	KindLaunch  Kind = 7
	KindStarted Kind = 8
	KindSignal  Kind = 9
	KindExited  Kind = 10
	KindEmpty   Kind = 11
)

const (
	TagStep      Tag = 1
	TagIndex     Tag = 2
	TagErrno     Tag = 3
	TagReason    Tag = 4
	TagWorkspace Tag = 5
	TagMask      Tag = 6
	TagReadonly  Tag = 7
	TagProgram   Tag = 8
	TagRlimit    Tag = 9
	TagProcesses Tag = 10
	TagShm       Tag = 11
	TagWritable  Tag = 12
	TagArg       Tag = 13
	TagEnv       Tag = 14
	TagCwd       Tag = 15
	TagBody      Tag = 16
	TagStatus    Tag = 17
	TagCPU       Tag = 18
	TagMaxRSS    Tag = 19
	TagSignal    Tag = 20
	TagTree      Tag = 21
	TagTerminal  Tag = 22
	TagRoot      Tag = 23
)

const (
	messageMagic   = 0x4c4c4543 // "CELL"
	messageVersion = 1
	headerBytes    = 8
)

// Message is a message to or from the C side of a sandbox, being written or
// already read.
type Message struct {
	Kind   Kind
	fields []field
}

type field struct {
	tag  Tag
	data []byte
}

var errMalformed = errors.New("malformed message")

// Bytes adds a field.
func (m *Message) Bytes(t Tag, b []byte) *Message {
	m.fields = append(m.fields, field{t, b})
	return m
}

// String adds a string field with its terminating NUL.
func (m *Message) String(t Tag, s string) *Message {
	return m.Bytes(t, append([]byte(s), 0))
}

// Uint32 adds a number.
func (m *Message) Uint32(t Tag, v uint32) *Message {
	return m.Bytes(t, binary.NativeEndian.AppendUint32(nil, v))
}

// Uint64 adds numbers as one field.
func (m *Message) Uint64(t Tag, vs ...uint64) *Message {
	var b []byte
	for _, v := range vs {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	return m.Bytes(t, b)
}

// Encode returns the message's bytes.
func (m *Message) Encode() []byte {
	e := binary.NativeEndian
	b := e.AppendUint32(nil, messageMagic)
	b = e.AppendUint16(b, uint16(m.Kind))
	b = e.AppendUint16(b, messageVersion)
	for _, f := range m.fields {
		b = e.AppendUint16(b, uint16(f.tag))
		b = e.AppendUint16(b, 0)
		b = e.AppendUint32(b, uint32(len(f.data)))
		b = append(b, f.data...)
	}
	return b
}

// Decode reads a message. The result shares b's memory.
func Decode(b []byte) (Message, error) {
	e := binary.NativeEndian
	if len(b) < headerBytes || e.Uint32(b) != messageMagic {
		return Message{}, errMalformed
	}
	if v := e.Uint16(b[6:]); v != messageVersion {
		return Message{}, fmt.Errorf("message of version %d, this side speaks %d", v, messageVersion)
	}
	m := Message{Kind: Kind(e.Uint16(b[4:]))}
	for b = b[headerBytes:]; len(b) > 0; {
		if len(b) < 8 || e.Uint16(b[2:]) != 0 || uint64(e.Uint32(b[4:])) > uint64(len(b)-8) {
			return Message{}, errMalformed
		}
		n := int(e.Uint32(b[4:]))
		m.fields = append(m.fields, field{Tag(e.Uint16(b)), b[8 : 8+n]})
		b = b[8+n:]
	}
	return m, nil
}

func (m Message) find(t Tag) []byte {
	for _, f := range m.fields {
		if f.tag == t {
			return f.data
		}
	}
	return nil
}

// Number returns the first field with the tag as a number, 0 if absent.
func (m Message) Number(t Tag) uint64 {
	switch d := m.find(t); len(d) {
	case 4:
		return uint64(binary.NativeEndian.Uint32(d))
	case 8:
		return binary.NativeEndian.Uint64(d)
	}
	return 0
}

// Text returns the first field with the tag as a string, "" if absent.
func (m Message) Text(t Tag) string {
	d := m.find(t)
	if len(d) == 0 || d[len(d)-1] != 0 {
		return ""
	}
	return string(d[:len(d)-1])
}
