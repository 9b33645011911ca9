package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// single is the value of a flag that may be given once: of two directories one
// would silently not be served.
type single struct {
	value *string
	kind  string
	given bool
}

func (s *single) Type() string   { return s.kind }
func (s *single) String() string { return *s.value }

func (s *single) Set(v string) error {
	if s.given {
		return errors.New("it was given before, and one is used; to serve several workspaces name them in a file and use mcp --config")
	}
	*s.value, s.given = v, true
	return nil
}

// span is the value of a flag that is a time.
type span struct{ value *time.Duration }

func (s span) Type() string   { return "TIME" }
func (s span) String() string { return s.value.String() }

func (s span) Set(v string) error {
	d, err := time.ParseDuration(v)
	if _, plain := strconv.ParseFloat(v, 64); err != nil && plain == nil {
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
