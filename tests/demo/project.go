package main

// project is what the agent works on: a small thing in C, one in Go and one in
// Python, none of which needs anything from a network.
var project = map[string]string{
	"c/Makefile": `CC = gcc
CFLAGS = -std=c11 -O2 -Wall -Wextra -Werror

test: leap_test
	./leap_test

leap_test: leap.c leap_test.c
	$(CC) $(CFLAGS) -o $@ leap.c leap_test.c
`,
	"c/leap.c": `int leap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }
`,
	"c/leap_test.c": `#include <stdio.h>

int leap(int year);

int main(void) {
	static const struct { int year, want; } cases[] = {{1900, 0}, {2000, 1}, {2023, 0}, {2024, 1}};
	int failed = 0, n = sizeof cases / sizeof *cases;
	for (int i = 0; i < n; i++)
		failed += leap(cases[i].year) != cases[i].want;
	printf("%d of %d tests passed\n", n - failed, n);
	return failed != 0;
}
`,
	"go/go.mod": "module demo/leap\n\ngo 1.21\n",
	"go/leap.go": `// Package leap knows the calendar.
package leap

// Leap tells whether year has a 29th of February.
func Leap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }
`,
	"go/leap_test.go": `package leap

import "testing"

func TestLeap(t *testing.T) {
	for year, want := range map[int]bool{1900: false, 2000: true, 2023: false, 2024: true} {
		if got := Leap(year); got != want {
			t.Errorf("%d: got %v", year, got)
		}
	}
}
`,
	"lines.py": `import json, pathlib

sources = (p for d in ("c", "go") for p in sorted(pathlib.Path(d).glob("*.[cg]*")))
print(json.dumps({str(p): len(p.read_text().splitlines()) for p in sources}))
`,
	"ask.py": `import os, signal

def size(*_):
    columns, rows = os.get_terminal_size()
    print(f"[{rows} rows, {columns} columns]", flush=True)

size()
signal.signal(signal.SIGWINCH, size)
name = input("Who works here? ")
print(f"Good morning, {name}.")
`,
	".gitignore": "leap_test\n",
}
