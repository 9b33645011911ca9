//go:build failpoints

// Package failpoint lets tests end or fail a program at each of its durable steps: the
// file "failpoint" beside the program says at which, and "failpoint.log" is told every
// step that is reached.
package failpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

var point struct {
	mu      sync.Mutex
	program string
	at      int // which hit of this program, from 1; 0 for none
	action  string
	hits    int
	log     *os.File
}

// Open is called once, before a program gives up its rights. The file holds the name of
// a program, the number of a hit in it and what then happens: "exit", "block" or the
// name of an errno.
func Open() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir := filepath.Dir(self)
	point.program = filepath.Base(self)
	point.log, err = os.OpenFile(filepath.Join(dir, "failpoint.log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "failpoint"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var program, action string
	var at int
	if _, err := fmt.Sscan(string(text), &program, &at, &action); err != nil {
		return fmt.Errorf("cannot read failpoint: %w", err)
	}
	if program == point.program {
		point.at, point.action = at, action
	}
	return nil
}

// Hit is called before a durable step. An error stands for that of the step.
func Hit(name string) error {
	point.mu.Lock()
	defer point.mu.Unlock()
	if point.log == nil {
		return nil
	}
	point.hits++
	fmt.Fprintf(point.log, "%s %d %s\n", point.program, point.hits, name)
	if point.hits != point.at {
		return nil
	}
	switch point.action {
	case "exit": // a filter may keep a program from killing itself
		os.Exit(137)
	case "block":
		select {}
	case "ENOSPC":
		return syscall.ENOSPC
	}
	return syscall.EIO
}
