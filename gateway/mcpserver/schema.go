package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// schema is the subset of JSON Schema that tool inputs are written in. Reading
// one fails on any keyword that check does not enforce.
type schema struct {
	Type                 string             `json:"type"`
	Description          string             `json:"description"`
	Properties           map[string]*schema `json:"properties"`
	Required             []string           `json:"required"`
	AdditionalProperties *others            `json:"additionalProperties"`
	MaxProperties        *int64             `json:"maxProperties"`
	Items                *schema            `json:"items"`
	Enum                 []string           `json:"enum"`
	Minimum              *int64             `json:"minimum"`
	Maximum              *int64             `json:"maximum"`
	MinLength            *int64             `json:"minLength"` // characters
	MaxLength            *int64             `json:"maxLength"`
	MinItems             *int64             `json:"minItems"`
	MaxItems             *int64             `json:"maxItems"`
}

// others is the schema of members that have none of their own; false allows none.
type others struct{ *schema }

func (o *others) UnmarshalJSON(text []byte) error {
	if string(text) == "false" {
		return nil
	}
	o.schema = mustSchema(string(text))
	return nil
}

// mustSchema reads a schema that is part of the program.
func mustSchema(text string) *schema {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	var s schema
	if err := d.Decode(&s); err != nil {
		panic(fmt.Sprintf("bug: cannot read schema %s: %v", text, err))
	}
	return &s
}

// check returns raw, valid JSON, as Go values: map[string]any, []any, string,
// int64, bool.
func (s *schema) check(raw json.RawMessage) (any, *problem) {
	if found := kind(raw); found != s.Type && (found != "number" || s.Type != "integer") {
		return nil, wrongType(s.Type, found)
	}
	switch s.Type {
	case "object":
		return s.object(raw)
	case "array":
		return s.array(raw)
	case "string":
		return s.string(raw)
	case "integer":
		return s.integer(raw)
	}
	return string(raw) == "true", nil
}

func (s *schema) object(raw json.RawMessage) (any, *problem) {
	fields, err := members(raw)
	if err != nil {
		return nil, &problem{text: err.Error(), next: "send the arguments the schema names, each once"}
	}
	if p := within("members", int64(len(fields)), nil, s.MaxProperties); p != nil {
		return nil, p
	}
	values := make(map[string]any, len(fields))
	for _, f := range fields {
		property := s.Properties[f.key]
		if property == nil && s.AdditionalProperties != nil {
			property = s.AdditionalProperties.schema
		}
		if property == nil {
			return nil, s.unknown(f.key)
		}
		value, p := property.check(f.value)
		if p != nil {
			return nil, p.below("." + f.key)
		}
		values[f.key] = value
	}
	for _, key := range s.Required {
		if _, ok := values[key]; !ok {
			return nil, (&problem{text: "is required", next: "send it"}).below("." + key)
		}
	}
	return values, nil
}

func (s *schema) unknown(unsafeKey string) *problem {
	allowed := strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", ")
	return &problem{text: "argument " + quoted(unsafeKey) + " is unknown", next: "send only: " + allowed}
}

// array stops at the first item too many: nothing larger is ever built.
func (s *schema) array(raw json.RawMessage) (any, *problem) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, wrongType("array", "something else")
	}
	values := []any{}
	for d.More() {
		if p := within("items", int64(len(values)+1), nil, s.MaxItems); p != nil {
			return nil, p
		}
		var item json.RawMessage
		if err := d.Decode(&item); err != nil {
			return nil, wrongType("array", "something else")
		}
		value, p := s.Items.check(item)
		if p != nil {
			return nil, p.below(fmt.Sprintf("[%d]", len(values)))
		}
		values = append(values, value)
	}
	return values, within("items", int64(len(values)), s.MinItems, nil)
}

func (s *schema) string(raw json.RawMessage) (any, *problem) {
	var value string
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, wrongType("string", "something else")
	}
	if strings.ContainsRune(value, 0) {
		return nil, &problem{value: true, text: "holds a NUL character", next: "send it without"}
	}
	if s.Enum != nil && !slices.Contains(s.Enum, value) {
		return nil, &problem{value: true, text: "cannot be " + quoted(value), next: "send one of: " + strings.Join(s.Enum, ", ")}
	}
	return value, within("characters", int64(utf8.RuneCountInString(value)), s.MinLength, s.MaxLength)
}

func (s *schema) integer(raw json.RawMessage) (any, *problem) {
	if bytes.ContainsAny(raw, ".eE") {
		return nil, wrongType("integer", "a number with a fraction or exponent")
	}
	value, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil { // only out of range is left
		return nil, &problem{value: true, text: "is too large a number", next: "send one that fits in 64 bits"}
	}
	return value, within("", value, s.Minimum, s.Maximum)
}

// within checks n, a count of unit or a number itself, against the bounds that are set.
func within(unit string, n int64, low, high *int64) *problem {
	is := "is"
	if unit != "" {
		is, unit = "has", " "+unit
	}
	switch {
	case low != nil && n < *low:
		return &problem{value: true, text: fmt.Sprintf("%s %d%s", is, n, unit), next: fmt.Sprintf("send at least %d", *low)}
	case high != nil && n > *high:
		return &problem{value: true, text: fmt.Sprintf("%s more than %d%s", is, *high, unit), next: fmt.Sprintf("send at most %d", *high)}
	}
	return nil
}

// kind names the JSON type of a valid value.
func kind(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
