//go:build failpoints

// Package failpoint lets tests end or fail a program at each of its durable steps: the
// file "failpoint" beside the program says at which, and "failpoint.log" is told every
// step that is reached.
package failpoint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

var point struct {
	mu      sync.Mutex
	program string
	actions map[int]string // by hit
	log     *os.File
	resume  int // descriptor, -1 for none
}

// Open is called once, before a program gives up its rights. Each line of the file
// holds the name of a program, the number of a hit in it (from 1, over all processes
// of the program, as they stand in the log) and what then happens: "exit", "block" or
// the name of an errno. A program that is blocked goes on once it can read a byte from
// the FIFO "failpoint.resume", and exits where nobody has that open any more.
func Open() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir := filepath.Dir(self)
	point.program = filepath.Base(self)
	point.log, err = os.OpenFile(filepath.Join(dir, "failpoint.log"), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	point.resume, err = syscall.Open(filepath.Join(dir, "failpoint.resume"), syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err == nil {
		err = syscall.SetNonblock(point.resume, false)
	}
	if err != nil && err != syscall.ENOENT {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "failpoint"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	point.actions = map[int]string{}
	for line := range strings.Lines(string(text)) {
		var program, action string
		var at int
		if _, err := fmt.Sscan(line, &program, &at, &action); err != nil {
			return fmt.Errorf("cannot read failpoint: %w", err)
		}
		if program == point.program {
			point.actions[at] = action
		}
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
	hit := 1 + hits()
	fmt.Fprintf(point.log, "%s %d %s\n", point.program, hit, name)
	switch point.actions[hit] {
	case "":
		return nil
	case "exit": // a filter may keep a program from killing itself
		os.Exit(137)
	case "block":
		block()
		return nil
	case "ENOSPC":
		return syscall.ENOSPC
	}
	return syscall.EIO
}

// hits counts those of this program so far.
func hits() (n int) {
	log := bufio.NewScanner(io.NewSectionReader(point.log, 0, math.MaxInt64))
	for log.Scan() {
		if strings.HasPrefix(log.Text(), point.program+" ") {
			n++
		}
	}
	return n
}

func block() {
	for point.resume < 0 {
		<-time.After(time.Hour) // the runtime ends a program in which nothing waits for anything
	}
	n, err := syscall.Read(point.resume, make([]byte, 1))
	for err == syscall.EINTR {
		n, err = syscall.Read(point.resume, make([]byte, 1))
	}
	if n != 1 {
		os.Exit(137)
	}
}
