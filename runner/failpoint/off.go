//go:build !failpoints

// Package failpoint lets tests end or fail a program at each of its durable steps. In
// a program built without the tag "failpoints" it does nothing.
package failpoint

// Hit is called before a durable step. An error stands for that of the step.
func Hit(string) error { return nil }

// Open is called once, before a program gives up its rights.
func Open() error { return nil }
