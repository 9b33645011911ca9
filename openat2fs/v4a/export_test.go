package v4a

import "io/fs"

// Counted is Plan, and how many steps it took.
func Counted(patch Patch, source Source) ([]Change, int64, error) {
	p := planner{source: source, above: map[string]fs.FileMode{}}
	changes, err := p.plan(patch)
	return changes, int64(p.steps), err
}
