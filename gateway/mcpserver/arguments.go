package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"codespace/runner"
)

// argumentDepth bounds the nesting of arguments.
const argumentDepth = 32

// arguments are the values of one call, of the types its schema names.
type arguments map[string]any

func (a arguments) has(key string) bool { _, ok := a[key]; return ok }

func (a arguments) text(key string) string { s, _ := a[key].(string); return s }

func (a arguments) boolean(key string) bool { b, _ := a[key].(bool); return b }

func (a arguments) integer(key string, otherwise int64) int64 {
	if n, ok := a[key].(int64); ok {
		return n
	}
	return otherwise
}

func (a arguments) list(key string) []string {
	items, _ := a[key].([]any)
	list := make([]string, len(items))
	for i, item := range items {
		list[i], _ = item.(string)
	}
	return list
}

// texts is an object of strings.
func (a arguments) texts(key string) map[string]string {
	fields, _ := a[key].(map[string]any)
	texts := make(map[string]string, len(fields))
	for name, value := range fields {
		texts[name], _ = value.(string)
	}
	return texts
}

// problem is why arguments do not fit their schema.
type problem struct {
	path  string // ".key", ".key[3]"; "" for the arguments as a whole
	value bool   // the type is right and the value is not
	text  string
	next  string
}

// decode checks unsafe arguments against s. Absent and null mean no arguments.
func decode(s *schema, unsafe json.RawMessage) (arguments, *problem) {
	unsafe = bytes.TrimSpace(unsafe)
	if len(unsafe) == 0 || string(unsafe) == "null" {
		unsafe = json.RawMessage("{}")
	}
	if p := wellFormed(unsafe); p != nil {
		return nil, p
	}
	value, p := s.check(unsafe)
	if p != nil {
		return nil, p
	}
	return arguments(value.(map[string]any)), nil
}

// wellFormed refuses what is not the text of one JSON object of Unicode strings.
func wellFormed(unsafe json.RawMessage) *problem {
	switch {
	case !utf8.Valid(unsafe):
		return &problem{text: "the arguments are not valid UTF-8", next: "encode other bytes as base64 where a tool takes it"}
	case nesting(unsafe) > argumentDepth:
		return &problem{text: fmt.Sprintf("the arguments nest deeper than %d", argumentDepth), next: "send them as the schema says"}
	case !json.Valid(unsafe):
		return &problem{text: "the arguments are not valid JSON", next: "send one JSON object"}
	case loneSurrogate(unsafe):
		return &problem{text: "the arguments hold half of a surrogate pair", next: "encode other bytes as base64 where a tool takes it"}
	case kind(unsafe) != "object":
		return &problem{text: "the arguments must be an object, not " + kind(unsafe), next: "send one JSON object"}
	}
	return nil
}

func wrongType(wanted, found string) *problem {
	return &problem{text: fmt.Sprintf("must be of type %s, not %s", wanted, found), next: "send it as the schema says"}
}

// below moves p under a member ".key" or an item "[n]".
func (p *problem) below(step string) *problem {
	p.path = step + p.path
	return p
}

// fault says the problem with its stable code: codes names the arguments whose
// wrong values have one of their own.
func (p *problem) fault(codes map[string]runner.Code) *runner.Fault {
	path := strings.TrimPrefix(p.path, ".")
	if path == "" {
		return &runner.Fault{Code: runner.InvalidArgument, Message: p.text, Next: p.next}
	}
	f := &runner.Fault{
		Code:    runner.InvalidArgument,
		Message: path + " " + p.text,
		Next:    p.next,
		Details: map[string]any{"argument": path},
	}
	top := path[:max(strings.IndexAny(path+".", ".["), 0)]
	if code, ok := codes[top]; ok && p.value {
		f.Code = code
	}
	return f
}
