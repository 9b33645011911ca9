package policy

import (
	"fmt"
	"strconv"
	"strings"
)

// flaw is what is wrong with one setting, wherever it was written: what was
// found, what is allowed, and what to do about it.
type flaw struct {
	found   string
	allowed string
	next    string
}

func (f *flaw) Error() string {
	return "found " + f.found + "; allowed: " + f.allowed + "; " + f.next
}

// rule turns one written value into a setting. parse leaves found and allowed
// of a flaw empty where the written value and the rule already say them.
type rule[T, V any] struct {
	allowed string
	parse   func(T) (V, *flaw)
}

// apply is parse with every part of a flaw filled in.
func (r rule[T, V]) apply(written T) (V, *flaw) {
	v, f := r.parse(written)
	if f == nil {
		return v, nil
	}
	return v, f.filled(describe(written), r.allowed)
}

// filled is f with its silent parts said.
func (f flaw) filled(found, allowed string) *flaw {
	if f.found == "" {
		f.found = found
	}
	if f.allowed == "" {
		f.allowed = allowed
	}
	return &f
}

// shownBytes bounds how much of a written value an error repeats.
const shownBytes = 512

// quote shows a written string so that it cannot act on a terminal.
func quote(text string) string {
	if len(text) > shownBytes {
		return strconv.Quote(text[:shownBytes]) + "..."
	}
	return strconv.Quote(text)
}

// printable is text of a library in the same manner, without quotes around it.
func printable(text string) string {
	shown := strings.Map(func(c rune) rune {
		if strconv.IsPrint(c) {
			return c
		}
		return '?'
	}, text)
	return strings.ToValidUTF8(shown[:min(len(shown), shownBytes)], "")
}

// describe names a value as an operator would.
func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "nothing"
	case string:
		return quote(v)
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return "the number " + strconv.FormatInt(v, 10)
	case float64:
		return "the number " + strconv.FormatFloat(v, 'g', -1, 64)
	case map[string]any:
		return "a table"
	case []any:
		return "an array"
	default: // the four kinds of TOML date
		return quote(fmt.Sprint(v))
	}
}
