package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf16"
)

// encoding/json forgives what this package must not: a key given twice, half a
// surrogate pair. What stands here looks at JSON without forgiving.

// maxMembers bounds the keys of one object.
const maxMembers = 2048

var (
	errNotObject = errors.New("this is not an object")
	errTooMany   = fmt.Errorf("an object has more than %d keys", maxMembers)
)

// duplicateKey is a key that occurs twice in one object.
type duplicateKey string

func (k duplicateKey) Error() string { return fmt.Sprintf("key %s is given twice", quoted(string(k))) }

type member struct {
	key   string
	value json.RawMessage
}

// members reads a valid JSON object one level deep, in its own order.
func members(object json.RawMessage) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, errNotObject
	}
	var all []member
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: fmt.Sprint(token)}
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		if len(all) == maxMembers {
			return nil, errTooMany
		}
		if seen[m.key] {
			return nil, duplicateKey(m.key)
		}
		seen[m.key] = true
		all = append(all, m)
	}
	return all, nil
}

// nesting tells how deep objects and arrays nest in raw, valid or not.
func nesting(raw []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = endOfString(raw, i)
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// endOfString finds the quote that closes the one at i.
func endOfString(raw []byte, i int) int {
	for i++; i < len(raw) && raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i
}

// loneSurrogate tells whether valid JSON escapes half of a surrogate pair:
// something no UTF-8 string can hold.
func loneSurrogate(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		first, ok := unicodeEscape(raw[i:])
		if !ok {
			i++ // a backslash and one more byte, which may be a backslash
			continue
		}
		i += 5
		if !utf16.IsSurrogate(first) {
			continue
		}
		second, _ := unicodeEscape(raw[i+1:])
		if utf16.DecodeRune(first, second) == unicode.ReplacementChar {
			return true
		}
		i += 6
	}
	return false
}

// unicodeEscape reads a \uXXXX at the start of raw.
func unicodeEscape(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), err == nil
}
