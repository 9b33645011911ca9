package cell_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"codespace/helper/cell"
	"codespace/sandbox/message"
)

// goodLaunch is a launch of n arguments.
func goodLaunch(n int) *message.Message {
	m := &message.Message{Kind: message.KindLaunch}
	for i := range n {
		m.String(message.TagArg, fmt.Sprint("argument ", i))
	}
	return m.String(message.TagEnv, "A=1").String(message.TagEnv, "").String(message.TagCwd, "/srv/site")
}

// goodConfig is a configuration with everything in it but one tag.
func goodConfig(without message.Tag) *message.Message {
	m := &message.Message{Kind: message.KindConfig}
	for _, f := range []field{
		{message.TagWorkspace, []byte("/srv/site\x00")}, {message.TagMask, []byte("/proc/kcore\x00")}, {message.TagReadonly, []byte("/proc/sys\x00")},
		{message.TagProgram, make([]byte, 8)}, {message.TagProgram, make([]byte, maxProgram)}, {message.TagRlimit, make([]byte, 16)},
		{message.TagProcesses, []byte("12345678")}, {message.TagShm, []byte("12345678")}, {message.TagRoot, []byte("1234567812345678")},
	} {
		if f.tag != without {
			m.Bytes(f.tag, f.data)
		}
	}
	return m
}

// put changes two bytes of a message.
func put(b []byte, at int, v uint16) []byte {
	b = bytes.Clone(b)
	binary.NativeEndian.PutUint16(b[at:], v)
	return b
}

func TestLaunchIsReadInC(t *testing.T) {
	for _, n := range []int{1, 2, 1000, 32768} {
		if argc, ok := cell.ParseLaunch(goodLaunch(n).Encode()); !ok || argc != n {
			t.Errorf("%d arguments: %d, %v", n, argc, ok)
		}
	}
	accepted := map[string]*message.Message{
		"empty argument":       goodLaunch(1).String(message.TagArg, ""),
		"long argument":        goodLaunch(1).String(message.TagArg, strings.Repeat("x", 1<<20)),
		"any bytes but NUL":    goodLaunch(1).String(message.TagArg, "\x01\xff\n\xc0\x80"),
		"cwd is the root":      new(message.Message{Kind: message.KindLaunch}).String(message.TagArg, "x").String(message.TagCwd, "/"),
		"cwd is the workspace": new(message.Message{Kind: message.KindLaunch}).String(message.TagArg, "x").String(message.TagCwd, "."),
		"body":                 new(message.Message{Kind: message.KindLaunch}).Uint64(message.TagBody, 1),
	}
	for name, m := range accepted {
		if argc, ok := cell.ParseLaunch(m.Encode()); !ok {
			t.Errorf("%s: refused", name)
		} else if want, _ := launch(m.Encode()); argc != want {
			t.Errorf("%s: %d arguments, want %d", name, argc, want)
		}
	}
}

func TestLaunchRefusedInC(t *testing.T) {
	good := goodLaunch(1).Encode()
	bodyOnly := func() *message.Message {
		return new(message.Message{Kind: message.KindLaunch}).Uint64(message.TagBody, 100)
	}
	cases := map[string][]byte{
		"nothing":                  {},
		"one byte":                 good[:1],
		"header cut short":         good[:7],
		"no field":                 good[:8],
		"wrong magic":              put(good, 0, 0),
		"another kind":             put(good, 4, uint16(message.KindConfig)),
		"kind 0":                   put(good, 4, 0),
		"older version":            put(good, 6, 0),
		"newer version":            put(good, 6, 2),
		"reserved word":            put(good, 10, 1),
		"length beyond the end":    put(good, 12, 0xfff0),
		"length of four gigabytes": put(put(good, 12, 0xffff), 14, 0xffff),
		"field header cut short":   good[:15],
		"last byte missing":        good[:len(good)-1],
		"byte too many":            append(bytes.Clone(good), 0),
		"NUL inside an argument":   goodLaunch(1).String(message.TagArg, "a\x00b").Encode(),
		"NUL inside a variable":    goodLaunch(1).String(message.TagEnv, "\x00").Encode(),
		"NUL inside cwd":           goodLaunch(1).String(message.TagCwd, "/a\x00").Encode(),
		"no terminator":            goodLaunch(1).Bytes(message.TagArg, []byte("abc")).Encode(),
		"argument of no bytes":     goodLaunch(1).Bytes(message.TagArg, nil).Encode(),
		"no argument":              goodLaunch(0).Encode(),
		"no cwd":                   new(message.Message{Kind: message.KindLaunch}).String(message.TagArg, "x").Encode(),
		"relative cwd":             goodLaunch(1).String(message.TagCwd, "srv").Encode(),
		"cwd above":                goodLaunch(1).String(message.TagCwd, "..").Encode(),
		"empty cwd":                goodLaunch(1).String(message.TagCwd, "").Encode(),
		"unknown tag":              goodLaunch(1).String(99, "x").Encode(),
		"tag 0":                    goodLaunch(1).String(0, "x").Encode(),
		"a configuration's tag":    goodLaunch(1).String(message.TagWorkspace, "/x").Encode(),
		"body and arguments":       goodLaunch(1).Uint64(message.TagBody, 100).Encode(),
		"empty body and arguments": goodLaunch(1).Uint64(message.TagBody, 0).Encode(),
		"empty body":               new(message.Message{Kind: message.KindLaunch}).Uint64(message.TagBody, 0).Encode(),
		"body and a variable":      bodyOnly().String(message.TagEnv, "A=1").Encode(),
		"body and cwd":             bodyOnly().String(message.TagCwd, "/").Encode(),
		"body of four bytes":       new(message.Message{Kind: message.KindLaunch}).Uint32(message.TagBody, 100).Encode(),
		"body of two numbers":      new(message.Message{Kind: message.KindLaunch}).Uint64(message.TagBody, 100, 1).Encode(),
	}
	for name, b := range cases {
		if argc, ok := cell.ParseLaunch(b); ok {
			t.Errorf("%s: accepted with %d arguments", name, argc)
		}
		if _, ok := launch(b); ok {
			t.Errorf("%s: the model of this test accepts it", name)
		}
	}
	for n := range good { // every truncation
		if _, ok := cell.ParseLaunch(good[:n]); ok {
			t.Errorf("accepted when cut at byte %d of %d", n, len(good))
		}
	}
}

func TestConfigIsReadInC(t *testing.T) {
	if !cell.ParseConfig(goodConfig(0).Encode()) {
		t.Fatal("not shown: the configuration itself is refused")
	}
	many := goodConfig(0)
	for range maxPaths - 1 {
		many.String(message.TagMask, "/proc/x").String(message.TagReadonly, "/proc/y")
	}
	for range maxRlimits - 1 {
		many.Uint64(message.TagRlimit, 1, 2)
	}
	if !cell.ParseConfig(many.Encode()) {
		t.Error("as many as fit: refused")
	}
	for _, optional := range []message.Tag{message.TagMask, message.TagReadonly, message.TagRlimit} {
		if !cell.ParseConfig(goodConfig(optional).Encode()) {
			t.Errorf("refused without tag %d", optional)
		}
	}
}

// A cell that could not be locked down must not exist.
func TestConfigRefusedInC(t *testing.T) {
	good := goodConfig(0).Encode()
	program := func(n int) *message.Message {
		return goodConfig(message.TagProgram).Bytes(message.TagProgram, make([]byte, 8)).Bytes(message.TagProgram, make([]byte, n))
	}
	cases := map[string][]byte{
		"nothing":                   {},
		"no field":                  good[:8],
		"wrong magic":               put(good, 2, 0),
		"another kind":              put(good, 4, uint16(message.KindLaunch)),
		"newer version":             put(good, 6, 2),
		"no workspace":              goodConfig(message.TagWorkspace).Encode(),
		"no filters":                goodConfig(message.TagProgram).Encode(),
		"one filter":                goodConfig(message.TagProgram).Bytes(message.TagProgram, make([]byte, 8)).Encode(),
		"three filters":             goodConfig(0).Bytes(message.TagProgram, make([]byte, 8)).Encode(),
		"empty filter":              program(0).Encode(),
		"half an instruction":       program(12).Encode(),
		"filter longer than it may": program(maxProgram + 8).Encode(),
		"no processes":              goodConfig(message.TagProcesses).Encode(),
		"processes of 0":            goodConfig(message.TagProcesses).Uint64(message.TagProcesses, 0).Encode(),
		"processes of four bytes":   goodConfig(message.TagProcesses).Uint32(message.TagProcesses, 9).Encode(),
		"no shm":                    goodConfig(message.TagShm).Encode(),
		"shm of 0":                  goodConfig(message.TagShm).Uint64(message.TagShm, 0).Encode(),
		"no root":                   goodConfig(message.TagRoot).Encode(),
		"root of no inode":          goodConfig(message.TagRoot).Uint64(message.TagRoot, 1, 0).Encode(),
		"root of one number":        goodConfig(message.TagRoot).Uint64(message.TagRoot, 1).Encode(),
		"root of three numbers":     goodConfig(0).Uint64(message.TagRoot, 1, 2, 3).Encode(),
		"relative workspace":        goodConfig(0).String(message.TagWorkspace, "srv").Encode(),
		"workspace with NUL":        goodConfig(0).String(message.TagWorkspace, "/a\x00b").Encode(),
		"relative mask":             goodConfig(0).String(message.TagMask, "proc").Encode(),
		"empty mask":                goodConfig(0).String(message.TagMask, "").Encode(),
		"mask of no bytes":          goodConfig(0).Bytes(message.TagMask, nil).Encode(),
		"limit of one number":       goodConfig(0).Uint64(message.TagRlimit, 1).Encode(),
		"unknown tag":               goodConfig(0).Uint64(99, 1).Encode(),
		"a launch's tag":            goodConfig(0).String(message.TagArg, "x").Encode(),
		"byte too many":             append(bytes.Clone(good), 0),
	}
	many := func(n int, m *message.Message, add func()) []byte {
		for range n {
			add()
		}
		return m.Encode()
	}
	m := goodConfig(message.TagMask)
	cases["too many masks"] = many(maxPaths+1, m, func() { m.String(message.TagMask, "/x") })
	m = goodConfig(message.TagReadonly)
	cases["too many read-only paths"] = many(maxPaths+1, m, func() { m.String(message.TagReadonly, "/x") })
	m = goodConfig(message.TagRlimit)
	cases["too many limits"] = many(maxRlimits+1, m, func() { m.Uint64(message.TagRlimit, 1, 1) })
	for name, b := range cases {
		if cell.ParseConfig(b) {
			t.Errorf("%s: accepted", name)
		}
		if config(b) {
			t.Errorf("%s: the model of this test accepts it", name)
		}
	}
}

// FuzzLaunch and FuzzConfig: the C parser accepts what the model accepts, and
// nothing that the Go side could not read.
func FuzzLaunch(f *testing.F) {
	f.Add(goodLaunch(1).Encode())
	f.Add(goodLaunch(50).Encode())
	f.Add(new(message.Message{Kind: message.KindLaunch}).Uint64(message.TagBody, 70000).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		argc, ok := cell.ParseLaunch(b)
		if want, allowed := launch(b); ok != allowed || ok && argc != want {
			t.Fatalf("%x: %d arguments (%v), want %d (%v)", b, argc, ok, want, allowed)
		}
		if _, err := message.Decode(b); ok && err != nil {
			t.Fatalf("%x: accepted in C and not in Go: %v", b, err)
		}
	})
}

func FuzzConfig(f *testing.F) {
	for _, without := range []message.Tag{message.TagProgram, message.TagRlimit} { // short ones: a long one is reduced for minutes
		f.Add(goodConfig(message.TagProgram).Bytes(message.TagProgram, make([]byte, 8)).Bytes(without, make([]byte, 16)).Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		ok := cell.ParseConfig(b)
		if want := config(b); ok != want {
			t.Fatalf("%x: %v, want %v", b, ok, want)
		}
		if _, err := message.Decode(b); ok && err != nil {
			t.Fatalf("%x: accepted in C and not in Go: %v", b, err)
		}
	})
}
