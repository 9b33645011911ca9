package mcpserver

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// fieldLines writes an object for people: "name: value" a line, a nested object
// under its dotted name, a list of objects as one "- " line each.
func fieldLines(object json.RawMessage) (string, error) {
	var out strings.Builder
	err := writeFields(&out, "", object)
	return strings.TrimSuffix(out.String(), "\n"), err
}

func writeFields(out *strings.Builder, prefix string, object json.RawMessage) error {
	fields, err := members(object)
	if err != nil {
		return err
	}
	for _, f := range fields {
		if err := writeField(out, prefix+f.key, f.value); err != nil {
			return err
		}
	}
	return nil
}

func writeField(out *strings.Builder, name string, value json.RawMessage) error {
	switch value[0] {
	case '{':
		return writeFields(out, name+".", value)
	case '[':
		return writeList(out, name, value)
	}
	fmt.Fprintf(out, "%s: %s\n", name, plain(value))
	return nil
}

func writeList(out *strings.Builder, name string, list json.RawMessage) error {
	var items []json.RawMessage
	if err := json.Unmarshal(list, &items); err != nil {
		return err
	}
	if len(items) > 0 && items[0][0] == '{' {
		return writeRows(out, name, items)
	}
	words := make([]string, len(items))
	for i, item := range items {
		words[i] = cell(item)
	}
	fmt.Fprintf(out, "%s: %s\n", name, strings.Join(words, ", "))
	return nil
}

func writeRows(out *strings.Builder, name string, rows []json.RawMessage) error {
	fmt.Fprintf(out, "%s:\n", name)
	for _, row := range rows {
		fields, err := members(row)
		if err != nil {
			return err
		}
		cells := make([]string, len(fields))
		for i, f := range fields {
			cells[i] = f.key + ": " + cell(f.value)
		}
		fmt.Fprintf(out, "- %s\n", strings.Join(cells, ", "))
	}
	return nil
}

// cell is plain where more follows on the line: what would look like that is quoted.
func cell(value json.RawMessage) string {
	s := plain(value)
	if value[0] == '"' && s[:min(1, len(s))] != `"` && (strings.Contains(s, ", ") || strings.Contains(s, ": ")) {
		return strconv.Quote(s)
	}
	return s
}

// plain shows a string without its quotes where that is one unmistakable line.
func plain(value json.RawMessage) string {
	var s string
	if value[0] != '"' || json.Unmarshal(value, &s) != nil {
		return string(value)
	}
	return oneLine(s)
}

// oneLine shows a string as one unmistakable line.
func oneLine(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
