package mcpserver

import (
	"strconv"
	"unicode/utf8"
)

// clip shortens s to at most n bytes without splitting a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// quoted shows a word a client chose: short, and with nothing that could be
// taken for something else.
func quoted(unsafe string) string { return strconv.Quote(clip(unsafe, 64)) }
