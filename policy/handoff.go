package policy

import (
	"path"
	"strings"
	"syscall"
)

// Handoff says why a tool outside the sandbox may run or obey a file later: a
// stable snake_case word, or "" where no reason is known. path is the file's in
// its workspace, relative and clean; mode is st_mode of stat(2), where no type
// stands for a regular file; isNew says that the path or its execute bits are
// new. A directory is never a reason, what lies in it may be one.
//
// It judges by name and mode alone, wherever in the workspace the file lies and
// in either case of letters. What only the disk can tell (a bare repository, a
// link that leaves the workspace) is for whoever looks at the disk.
func Handoff(path string, mode uint32, isNew bool) (reason string) {
	kind := mode & syscall.S_IFMT
	switch kind {
	case syscall.S_IFDIR:
		return ""
	case syscall.S_IFSOCK:
		return socket
	}
	if reason := obeyed(strings.ToLower(path)); reason != "" {
		return reason
	}
	regular := kind == 0 || kind == syscall.S_IFREG
	if isNew && regular && mode&0o111 != 0 {
		return executable
	}
	return ""
}

// obeyed looks a path in lower case up, the places first, since they are more
// exact than a name.
func obeyed(lower string) string {
	for directory, below := "", lower; below != ""; {
		directory, below, _ = strings.Cut(below, "/")
		for _, place := range obeyedPlaces[directory] {
			if begins(below, place.pattern) {
				return place.reason
			}
		}
	}
	if strings.HasSuffix(lower, "/.git/head") { // without it git sees no repository
		return nestedRepository
	}
	name := path.Base(lower)
	if name == ".git" { // a file or link that says where the repository is
		return gitLink
	}
	if reason := obeyedNames[name]; reason != "" {
		return reason
	}
	for _, form := range obeyedForms {
		if ok, _ := path.Match(form.pattern, name); ok {
			return form.reason
		}
	}
	return ""
}

// begins says whether the first components of a path match a pattern's, of which
// ** stands for one or more.
func begins(path, pattern string) bool {
	if pattern == "" {
		return true
	}
	if path == "" {
		return false
	}
	name, morePath, _ := strings.Cut(path, "/")
	want, morePattern, _ := strings.Cut(pattern, "/")
	if want == "**" {
		return begins(morePath, morePattern) || begins(morePath, pattern)
	}
	return (want == "*" || want == name) && begins(morePath, morePattern)
}
