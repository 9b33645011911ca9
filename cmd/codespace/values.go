package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// single is the value of a flag that may be given once: of two directories one would
// silently not be served. Completion parses flags more than once, so that a second
// value is refused by singles, not by Set.
type single struct {
	value
	given []string
}

// value is what cobra's flags are made of.
type value interface {
	Set(string) error
	String() string
	Type() string
}

func (s *single) Set(v string) error {
	s.given = append(s.given, v)
	return s.value.Set(v)
}

// singles refuses flags that were given twice.
func singles(cmd *cobra.Command) error {
	for _, name := range []string{"workspace", "config", "timeout", "memory"} {
		f := cmd.Flags().Lookup(name)
		if f == nil {
			continue
		}
		if s, is := f.Value.(*single); is && len(s.given) > 1 {
			return fmt.Errorf("cannot use --%s %s: --%s %s was given before, and one is used", name, s.given[1], name, s.given[0])
		}
	}
	return nil
}

// text is a plain value.
type text struct {
	value *string
	kind  string
}

func (t text) Type() string       { return t.kind }
func (t text) String() string     { return *t.value }
func (t text) Set(v string) error { *t.value = v; return nil }

// span is a value that is a time.
type span struct{ value *time.Duration }

func (s span) Type() string   { return "TIME" }
func (s span) String() string { return s.value.String() }

func (s span) Set(v string) error {
	d, err := time.ParseDuration(v)
	if n, plain := strconv.ParseFloat(v, 64); err != nil && plain == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
		return fmt.Errorf("it has no unit; for seconds write %ss", v)
	}
	if err != nil {
		return errors.New("it is not a time; write 90s, 10m or 1h30m")
	}
	if d < 0 {
		return errors.New("it is negative; write 0 for no limit")
	}
	*s.value = d
	return nil
}

// network is the value of --network: what commands may reach.
type network struct{}

func (network) Type() string   { return "KIND" }
func (network) String() string { return "restricted" }

func (network) Set(v string) error {
	if v != "restricted" {
		return errors.New("only restricted is available: a network of its own with nothing but loopback")
	}
	return nil
}
