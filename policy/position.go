package policy

import (
	"bytes"
	"errors"
	"fmt"
	"sort"

	"github.com/pelletier/go-toml/v2/unstable"
)

// A registry needs four levels of keys and some thousands of them. The ceilings
// keep a hostile file from costing more than its bytes: the decoder's search for
// duplicate keys is quadratic.
const (
	maxDepth = 8
	maxSpots = 16384
)

// spot is where one key of the file and its value stand, as byte offsets, with
// the keys of a table or the items of an array beneath it.
type spot struct {
	key   int
	value int
	keys  map[string]*spot
	items []*spot
}

// offset is where the key name of a table stands.
func (s *spot) offset(name string) int {
	if child, ok := s.keys[name]; ok {
		return child.key
	}
	return s.key
}

// defect is what is wrong with the text itself, before any setting is read.
type defect struct {
	offset  int
	message string
}

// indexer builds the tree of spots of one file.
type indexer struct {
	parser unstable.Parser
	text   []byte
	count  int
	defect *defect
}

// index finds every key and value of text. Duplicates are for the decoder.
func index(text []byte) (*spot, *defect) {
	ix := &indexer{text: text}
	ix.parser.Reset(text)
	root := &spot{}
	table := root
	for ix.defect == nil && ix.parser.NextExpression() {
		switch e := ix.parser.Expression(); e.Kind {
		case unstable.Table:
			table = ix.descend(root, e.Key())
		case unstable.ArrayTable:
			table = ix.descend(root, e.Key())
			table = ix.item(table, table.key)
		case unstable.KeyValue:
			ix.pair(table, e, 0)
		}
	}
	if err := ix.parser.Error(); err != nil && ix.defect == nil {
		ix.refuse(len(text), err.Error())
		var syntax *unstable.ParserError
		if errors.As(err, &syntax) {
			ix.defect.offset = int(ix.parser.Range(syntax.Highlight).Offset)
			ix.defect.message = syntax.Message
		}
	}
	return root, ix.defect
}

// descend follows a dotted key from under, making the spots it names. A table
// that is an item of an array is the array's last one.
func (ix *indexer) descend(under *spot, key unstable.Iterator) *spot {
	for depth := 1; key.Next(); depth++ {
		at := int(key.Node().Raw.Offset)
		if depth > maxDepth {
			ix.refuse(at, fmt.Sprintf("keys go more than %d levels deep", maxDepth))
			return under
		}
		if n := len(under.items); n > 0 {
			under = under.items[n-1]
		}
		under = ix.child(under, string(key.Node().Data), at)
	}
	return under
}

// pair records `key = value` in table.
func (ix *indexer) pair(table *spot, e *unstable.Node, depth int) {
	key := e.Key()
	end := 0
	for k := e.Key(); k.Next(); {
		end = int(k.Node().Raw.Offset + k.Node().Raw.Length)
	}
	s := ix.descend(table, key)
	rest := bytes.TrimLeft(ix.text[end:], " \t")
	rest = bytes.TrimLeft(bytes.TrimPrefix(rest, []byte("=")), " \t")
	s.value = len(ix.text) - len(rest)
	ix.contents(s, e.Value(), depth+1)
}

// contents records what an array or an inline table holds.
func (ix *indexer) contents(s *spot, value *unstable.Node, depth int) {
	if value.Kind != unstable.Array && value.Kind != unstable.InlineTable {
		return
	}
	if depth > maxDepth {
		ix.refuse(s.value, fmt.Sprintf("values go more than %d levels deep", maxDepth))
		return
	}
	for it := value.Children(); it.Next() && ix.defect == nil; {
		n := it.Node()
		if n.Kind == unstable.KeyValue {
			ix.pair(s, n, depth)
			continue
		}
		at := int(n.Raw.Offset)
		if n.Raw.Length == 0 { // the parser does not say where an inner array starts
			at = s.value
		}
		ix.contents(ix.item(s, at), n, depth+1)
	}
}

func (ix *indexer) child(table *spot, name string, at int) *spot {
	if s, ok := table.keys[name]; ok {
		return s
	}
	if table.keys == nil {
		table.keys = map[string]*spot{}
	}
	s := ix.spot(at)
	table.keys[name] = s
	return s
}

func (ix *indexer) item(array *spot, at int) *spot {
	s := ix.spot(at)
	array.items = append(array.items, s)
	return s
}

func (ix *indexer) spot(at int) *spot {
	if ix.count++; ix.count > maxSpots {
		ix.refuse(at, fmt.Sprintf("the file has more than %d keys and array items", maxSpots))
	}
	return &spot{key: at, value: at}
}

// refuse keeps the first defect.
func (ix *indexer) refuse(at int, message string) {
	if ix.defect == nil {
		ix.defect = &defect{offset: at, message: message}
	}
}

// lineStarts are the offsets at which the lines of text begin.
func lineStarts(text []byte) []int {
	starts := []int{0}
	for i, c := range text {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// lineColumn is the 1-based line and byte column of offset.
func lineColumn(starts []int, offset int) (line, column int) {
	line = sort.SearchInts(starts, offset+1)
	return line, offset - starts[line-1] + 1
}
