package policy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// setting is one value of a document with its key path and its position. Where
// the file says nothing the value is nil and the position that of the table in
// which it is missing.
type setting struct {
	doc   *document
	path  string
	spot  *spot
	value any
}

// get is the setting under key of a table.
func (s setting) get(key string) setting {
	child := setting{doc: s.doc, path: joinKey(s.path, key), spot: s.spot}
	table, _ := s.value.(map[string]any)
	child.value = table[key]
	if spot, ok := s.spot.keys[key]; ok {
		child.spot = spot
	}
	return child
}

// table reports whether s is a table, and every key in it that is not one of
// keys as a fault. A missing table is no fault.
func (s setting) table(keys ...string) bool {
	if !s.named() {
		return false
	}
	for _, key := range s.names() {
		if slices.Contains(keys, key) {
			continue
		}
		child := s.get(key)
		s.doc.report(child.spot.key, child.path, &flaw{
			found:   "an unknown key",
			allowed: strings.Join(keys, ", "),
			next:    "remove it or correct its name (case counts)",
		})
	}
	return true
}

// named reports whether s is a table whose keys are names of the operator's.
func (s setting) named() bool {
	if s.value == nil {
		return false
	}
	_, ok := s.value.(map[string]any)
	if !ok {
		s.reject(&flaw{allowed: "a table", next: "write it as [" + s.path + "]"})
	}
	return ok
}

// names are the keys of a table in the order of the file.
func (s setting) names() []string {
	table, _ := s.value.(map[string]any)
	names := make([]string, 0, len(table))
	for name := range table {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.spot.offset(a), s.spot.offset(b)), cmp.Compare(a, b))
	})
	return names
}

// items are the elements of an array of at most limit.
func (s setting) items(limit int, of string) []setting {
	if s.value == nil {
		return nil
	}
	allowed := fmt.Sprintf("an array of at most %d %s", limit, of)
	array, ok := s.value.([]any)
	if !ok {
		s.reject(&flaw{allowed: allowed, next: "write it as [ ... ]"})
		return nil
	}
	if len(array) > limit {
		s.reject(&flaw{found: fmt.Sprintf("%d items", len(array)), allowed: allowed, next: "shorten the list"})
		return nil
	}
	items := make([]setting, len(array))
	for i, value := range array {
		items[i] = setting{doc: s.doc, path: fmt.Sprintf("%s[%d]", s.path, i), spot: s.spot, value: value}
		if i < len(s.spot.items) {
			items[i].spot = s.spot.items[i]
		}
	}
	return items
}

// reject reports f at the setting's value.
func (s setting) reject(f *flaw) {
	s.doc.report(s.spot.value, s.path, f.filled(describe(s.value), ""))
}

// rejectName reports f at the setting's key.
func (s setting) rejectName(f *flaw) {
	s.doc.report(s.spot.key, s.path, f)
}

// take stores in into what r makes of s, and reports whether it did. Where the
// file says nothing it leaves into alone.
func take[T, V any](s setting, r rule[T, V], into *V) bool {
	if s.value == nil {
		return false
	}
	written, ok := s.value.(T)
	if !ok {
		s.reject(&flaw{allowed: r.allowed, next: "write a value of that kind"})
		return false
	}
	v, f := r.apply(written)
	if f != nil {
		s.reject(f)
		return false
	}
	*into = v
	return true
}

// require is take for a setting that has no default.
func require[T, V any](s setting, r rule[T, V], into *V) bool {
	if s.value == nil {
		s.reject(&flaw{allowed: r.allowed, next: "add the key"})
		return false
	}
	return take(s, r, into)
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// joinKey appends key to a path as TOML writes it.
func joinKey(path, key string) string {
	if !bareKey.MatchString(key) {
		key = quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
