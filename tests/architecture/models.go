package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const modelsFile = "tests/architecture/models.txt"

// checkModels looks through every text file but its own list for the hosts of
// model APIs and the names of their clients: no code path calls a model.
func checkModels(t *Tree) ([]Violation, error) {
	body, err := os.ReadFile(filepath.Join(t.Root, modelsFile))
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(string(body)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			names = append(names, regexp.QuoteMeta(line))
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	name := regexp.MustCompile(`(?i)(?:^|[^a-z0-9])(` + strings.Join(names, "|") + `)(?:[^a-z0-9]|$)`)
	var found []Violation
	for _, f := range t.Files {
		if f.Path != modelsFile {
			found = append(found, f.lines(name)...)
		}
	}
	return found, nil
}

func (f *File) lines(name *regexp.Regexp) []Violation {
	var found []Violation
	number := 0
	for line := range strings.Lines(string(f.Body)) {
		number++
		if hit := name.FindStringSubmatch(line); hit != nil {
			found = append(found, Violation{Check: "model", Place: f.Path, Line: number, What: "names " + hit[1] + ": nothing here calls a model"})
		}
	}
	return found
}
