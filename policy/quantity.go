package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// quantity is a kind of number as the registry writes it.
type quantity struct {
	words string                  // what it is, for errors
	next  string                  // how to write one
	read  func(any) (int64, bool) // false: not written that way
	show  func(int64) string      // as read takes it
}

var (
	sizes = quantity{
		words: "a size in quotes, in B, KiB, MiB, GiB or TiB,",
		next:  `write for example "64MiB"`,
		read: func(written any) (int64, bool) {
			text, ok := written.(string)
			if !ok {
				return 0, false
			}
			return parseSize(text)
		},
		show: func(n int64) string { return strconv.Quote(showSize(n)) },
	}
	durations = quantity{
		words: "a duration in quotes",
		next:  `write for example "90s" or "10m"`,
		read: func(written any) (int64, bool) {
			text, _ := written.(string)
			d, err := time.ParseDuration(text)
			return int64(d), err == nil
		},
		show: func(n int64) string { return strconv.Quote(showDuration(time.Duration(n))) },
	}
	counts = quantity{
		words: "a whole number without quotes",
		next:  "write a number in that range",
		read: func(written any) (int64, bool) {
			n, ok := written.(int64)
			return n, ok
		},
		show: func(n int64) string { return strconv.FormatInt(n, 10) },
	}
)

// within is the rule for a quantity from least to most, both allowed.
func (q quantity) within(least, most int64) rule[any, int64] {
	allowed := fmt.Sprintf("%s from %s to %s", q.words, q.show(least), q.show(most))
	return rule[any, int64]{allowed, func(written any) (int64, *flaw) {
		n, ok := q.read(written)
		if !ok || n < least || n > most {
			return 0, &flaw{next: q.next}
		}
		return n, nil
	}}
}

// sizeUnits go from the longest name to the shortest: every name ends in B.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"B", 1},
}

// parseSize reads digits and a unit, nothing between or around them.
func parseSize(text string) (int64, bool) {
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		most := uint64(1<<63-1) / uint64(unit.bytes)
		return int64(n) * unit.bytes, err == nil && n <= most
	}
	return 0, false
}

func showSize(n int64) string {
	for _, unit := range sizeUnits {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return "0B"
}

// showDuration is d without the zeros Go writes after whole minutes and hours.
func showDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
