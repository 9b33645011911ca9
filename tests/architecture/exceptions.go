package architecture

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const exceptionsFile = "tests/architecture/exceptions.txt"

// Exceptions is exceptions.txt: "at-most N", then lines of date, check, place,
// size and reason.
type Exceptions struct {
	atMost int
	list   []exception
}

type exception struct {
	check, place string
	size, line   int
}

func readExceptions(root string) (*Exceptions, error) {
	body, err := os.ReadFile(filepath.Join(root, exceptionsFile))
	if err != nil {
		return nil, err
	}
	e, number := &Exceptions{}, 0
	for line := range strings.Lines(string(body)) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if err := e.add(words, number); err != nil {
			return nil, fmt.Errorf("%s:%d: cannot read the line: %w", exceptionsFile, number, err)
		}
	}
	return e, nil
}

func (e *Exceptions) add(words []string, line int) (err error) {
	if words[0] == "at-most" && len(words) == 2 {
		e.atMost, err = strconv.Atoi(words[1])
		return err
	}
	if len(words) < 5 {
		return fmt.Errorf("want date, check, place, size and a reason")
	}
	if _, err := time.Parse(time.DateOnly, words[0]); err != nil {
		return err
	}
	size, err := strconv.Atoi(words[3])
	e.list = append(e.list, exception{words[1], words[2], size, line})
	return err
}

// apply takes away what is excepted and adds what is wrong with the list: it may
// only shrink, so a debt paid or made smaller must be written down.
func (e *Exceptions) apply(found []Violation) []Violation {
	for _, x := range e.list {
		rest, size := x.split(found)
		if size <= x.size {
			found = rest
		}
		if size < x.size {
			found = append(found, Violation{Check: "exception", Place: exceptionsFile, Line: x.line,
				What: fmt.Sprintf("%s %s needs %d, not %d: the list may only shrink", x.check, x.place, size, x.size)})
		}
	}
	if len(e.list) != e.atMost {
		found = append(found, Violation{Check: "exception", Place: exceptionsFile,
			What: fmt.Sprintf("has %d exceptions and says at-most %d: the list may only shrink", len(e.list), e.atMost)})
	}
	return found
}

// split gives what an exception does not speak of, and the sum of what it does.
func (x exception) split(found []Violation) (rest []Violation, size int) {
	for _, v := range found {
		if v.Check == x.check && v.Place == x.place && v.Size > 0 {
			size += v.Size
		} else {
			rest = append(rest, v)
		}
	}
	return rest, size
}
