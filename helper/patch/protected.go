package patch

import (
	"path"
	"strings"
)

// protects says by which pattern a file is protected: it is what the pattern names, or
// below that, or stands where a directory above it would. Letters are compared without
// case, as a case-insensitive file system and a checkout on one would.
func protects(patterns []string, file string) (pattern string, is bool) {
	return "", false
}

var _, _ = path.Match, strings.ToLower
