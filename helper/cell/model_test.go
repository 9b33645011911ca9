package cell_test

import (
	"bytes"
	"encoding/binary"

	"codespace/sandbox/message"
)

// field is one field of a message as the drawing in cell.h has it.
type field struct {
	tag  message.Tag
	data []byte
}

func (f field) text() (string, bool) {
	return string(bytes.TrimSuffix(f.data, []byte{0})), bytes.IndexByte(f.data, 0) == len(f.data)-1 && len(f.data) > 0
}

// read is the layout, written down a third time: by whether a message has a form
// and what is in it the C parsers are judged.
func read(b []byte) (kind message.Kind, fields []field, ok bool) {
	e := binary.NativeEndian
	if len(b) < 8 || e.Uint32(b) != 0x4c4c4543 || e.Uint16(b[6:]) != 1 {
		return 0, nil, false
	}
	kind, b = message.Kind(e.Uint16(b[4:])), b[8:]
	for len(b) > 0 {
		if len(b) < 8 || e.Uint16(b[2:]) != 0 || uint64(e.Uint32(b[4:])) > uint64(len(b)-8) {
			return 0, nil, false
		}
		end := 8 + int(e.Uint32(b[4:]))
		fields = append(fields, field{message.Tag(e.Uint16(b)), b[8:end]})
		b = b[end:]
	}
	return kind, fields, true
}

// launch says whether a message is one, and how many arguments it has.
func launch(b []byte) (argc int, ok bool) {
	kind, fields, ok := read(b)
	if !ok || kind != message.KindLaunch {
		return 0, false
	}
	env, cwd, body := 0, false, false
	for _, f := range fields {
		text, isText := f.text()
		switch f.tag {
		case message.TagBody:
			body = true
			isText = len(f.data) == 8 && binary.NativeEndian.Uint64(f.data) != 0
		case message.TagArg:
			argc++
		case message.TagEnv:
			env++
		case message.TagCwd:
			cwd = true
			isText = isText && (text == "." || len(text) > 0 && text[0] == '/')
		default:
			return 0, false
		}
		if !isText {
			return 0, false
		}
	}
	if body {
		return 0, argc == 0 && env == 0 && !cwd
	}
	return argc, argc > 0 && cwd
}

// limits of a configuration in cell.h.
const (
	maxPaths   = 64
	maxRlimits = 16
	maxProgram = 4096 * 8
)

// config says whether a message is a configuration.
func config(b []byte) bool {
	kind, fields, ok := read(b)
	if !ok || kind != message.KindConfig {
		return false
	}
	count, number := map[message.Tag]int{}, map[message.Tag]uint64{}
	for _, f := range fields {
		count[f.tag]++
		if !configField(f, number) {
			return false
		}
	}
	return count[message.TagWorkspace] > 0 && count[message.TagProgram] == 2 && count[message.TagMask] <= maxPaths && count[message.TagReadonly] <= maxPaths &&
		count[message.TagRlimit] <= maxRlimits && number[message.TagProcesses] != 0 && number[message.TagShm] != 0 && number[message.TagRoot] != 0
}

func configField(f field, number map[message.Tag]uint64) bool {
	switch f.tag {
	case message.TagWorkspace, message.TagMask, message.TagReadonly:
		text, ok := f.text()
		return ok && len(text) > 0 && text[0] == '/'
	case message.TagProgram:
		return len(f.data) > 0 && len(f.data)%8 == 0 && len(f.data) <= maxProgram
	case message.TagRlimit:
		return len(f.data) == 16
	case message.TagRoot: // device, inode
		if len(f.data) == 16 {
			number[f.tag] = binary.NativeEndian.Uint64(f.data[8:])
		}
		return len(f.data) == 16
	case message.TagProcesses, message.TagShm:
		if len(f.data) == 8 {
			number[f.tag] = binary.NativeEndian.Uint64(f.data)
		}
		return len(f.data) == 8
	}
	return false
}
