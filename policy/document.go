package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// maxFaults is how many faults one report names; the rest are only counted.
const maxFaults = 20

// document is one TOML file: its values, where each stands, and what has been
// found wrong with it so far.
type document struct {
	path   string
	values map[string]any
	spots  *spot
	lines  []int // offsets at which lines begin
	faults []fault
}

// fault is a flaw of the setting written at a position of the file.
type fault struct {
	offset int
	key    string
	flaw   *flaw
}

// parse reads text as TOML. path only names it.
func parse(path string, text []byte) (*document, error) {
	doc := &document{path: path, lines: lineStarts(text)}
	var bad *defect
	if doc.spots, bad = index(text); bad != nil {
		line, column := lineColumn(doc.lines, bad.offset)
		return nil, syntaxError(path, line, column, bad.message)
	}
	err := toml.Unmarshal(text, &doc.values)
	var syntax *toml.DecodeError
	if errors.As(err, &syntax) {
		line, column := syntax.Position()
		return nil, syntaxError(path, line, column, strings.TrimPrefix(syntax.Error(), "toml: "))
	}
	if err != nil {
		return nil, syntaxError(path, 1, 1, err.Error())
	}
	return doc, nil
}

func syntaxError(path string, line, column int, message string) error {
	f := &flaw{
		found:   "text that cannot be read (" + printable(message) + ")",
		allowed: "TOML in which every table and key is written once",
		next:    "correct this line",
	}
	return fmt.Errorf("%s:%d:%d: %w", path, line, column, f)
}

// root is the whole document as a setting.
func (d *document) root() setting {
	return setting{doc: d, spot: d.spots, value: d.values}
}

func (d *document) report(offset int, key string, f *flaw) {
	d.faults = append(d.faults, fault{offset: offset, key: key, flaw: f})
}

// verdict is nil for a document without faults, else all of them in the order of
// the file.
func (d *document) verdict() error {
	if len(d.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(d.faults, func(a, b fault) int { return cmp.Compare(a.offset, b.offset) })
	var errs []error
	for _, f := range d.faults[:min(len(d.faults), maxFaults)] {
		line, column := lineColumn(d.lines, f.offset)
		errs = append(errs, fmt.Errorf("%s:%d:%d: %s: %w", d.path, line, column, f.key, f.flaw))
	}
	if more := len(d.faults) - len(errs); more > 0 {
		errs = append(errs, fmt.Errorf("%s: and %d more", d.path, more))
	}
	return errors.Join(errs...)
}
