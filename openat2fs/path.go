package openat2fs

import "strings"

// What a path may be at most. maxPathBytes is the kernel's PATH_MAX without its
// NUL, maxNameBytes its NAME_MAX (limits.h).
const (
	maxPathBytes  = 4095
	maxNameBytes  = 255
	maxComponents = 256
)

// Path is a place beneath a root: components joined by "/", none of them empty,
// ".", "..", longer than maxNameBytes or with a NUL in it. It need not be UTF-8.
// The zero Path is the root itself; ParsePath never makes it. Paths compare with
// ==.
type Path struct{ text string }

// ParsePath takes what somebody outside wrote. Whatever is absolute, empty, or
// means another place than it spells ("." and "..", "//" and a trailing slash, a
// leading "~" or "file:") is PATH_ESCAPE; a NUL and what is too long are
// INVALID_ARGUMENT. The error is an *Error. Nothing is looked up.
func ParsePath(unsafePath string) (Path, error) {
	if reason, code := flawOfPath(unsafePath); reason != "" {
		return Path{}, &Error{Code: code, Op: "use path", Path: unsafePath, Reason: reason}
	}
	return Path{unsafePath}, nil
}

func flawOfPath(unsafePath string) (string, Code) {
	switch {
	case strings.IndexByte(unsafePath, 0) >= 0:
		return "it holds a NUL", InvalidArgument
	case len(unsafePath) > maxPathBytes:
		return "it is longer than 4095 bytes", InvalidArgument
	case unsafePath == "":
		return "it is empty", PathEscape
	case unsafePath[0] == '/':
		return "it is absolute", PathEscape
	case strings.Count(unsafePath, "/") >= maxComponents:
		return "it has more than 256 components", InvalidArgument
	case unsafePath == "~" || strings.HasPrefix(unsafePath, "~/"):
		return "no home directory is meant here", PathEscape
	case strings.HasPrefix(unsafePath, "file:"):
		return "it is a URL", PathEscape
	}
	for name := range strings.SplitSeq(unsafePath, "/") {
		if reason, code := flawOfName(name); reason != "" {
			return reason, code
		}
	}
	return "", ""
}

func flawOfName(unsafeName string) (string, Code) {
	switch {
	case unsafeName == "":
		return "a component is empty", PathEscape
	case unsafeName == "." || unsafeName == "..":
		return `a component is "` + unsafeName + `"`, PathEscape
	case strings.IndexByte(unsafeName, '/') >= 0:
		return "a name holds a slash", PathEscape
	case strings.IndexByte(unsafeName, 0) >= 0:
		return "it holds a NUL", InvalidArgument
	case len(unsafeName) > maxNameBytes:
		return "a component is longer than 255 bytes", InvalidArgument
	}
	return "", ""
}

// String is the path as it was parsed, "." for the root.
func (p Path) String() string {
	if p.text == "" {
		return "."
	}
	return p.text
}

// IsRoot says whether p is the root itself.
func (p Path) IsRoot() bool { return p.text == "" }

// Split is the directory p lies in and its name there. The root has neither: the
// error is PATH_ESCAPE.
func (p Path) Split() (Path, Name, error) {
	if p.IsRoot() {
		return Path{}, Name{}, &Error{Code: PathEscape, Op: "use path", Path: ".", Reason: "it is the root itself"}
	}
	i := strings.LastIndexByte(p.text, '/')
	return Path{p.text[:max(i, 0)]}, Name{p.text[i+1:]}, nil
}

// Join is name in the directory p. The error is INVALID_ARGUMENT where that is
// too long.
func (p Path) Join(name Name) (Path, error) {
	joined := name.text
	if !p.IsRoot() {
		joined = p.text + "/" + name.text
	}
	if len(joined) > maxPathBytes || strings.Count(joined, "/") >= maxComponents || name.text == "" {
		return Path{}, &Error{Code: InvalidArgument, Op: "use path", Path: joined, Reason: "it is too long, or ends in no name"}
	}
	return Path{joined}, nil
}

// Name is one component of a Path. The zero Name is none: every call refuses it.
type Name struct{ text string }

// ParseName takes one component, under the rules of ParsePath.
func ParseName(unsafeName string) (Name, error) {
	if reason, code := flawOfName(unsafeName); reason != "" {
		return Name{}, &Error{Code: code, Op: "use name", Path: unsafeName, Reason: reason}
	}
	return Name{unsafeName}, nil
}

func (n Name) String() string { return n.text }
