package openat2fs

import (
	"encoding/base64"
	"strings"
)

// A cursor is where the next page begins: the smallest key it may hold. The key
// of a file is its path, that of a directory its path and a slash, so that keys
// sort as the paths of all files do. It is a client's to send back, and believed
// in nothing: it is only ever compared.
const cursorMark = "1" // the first byte, for a form to come

func newCursor(from string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorMark + from))
}

// parseCursor is the key of a cursor, "" for none.
func parseCursor(unsafeCursor string) (string, error) {
	if unsafeCursor == "" {
		return "", nil
	}
	refuse := func(reason string) (string, error) {
		return "", &Error{Code: InvalidArgument, Op: "use cursor", Path: unsafeCursor, Reason: reason}
	}
	if len(unsafeCursor) > base64.RawURLEncoding.EncodedLen(len(cursorMark)+maxPathBytes+1) {
		return refuse("it is too long to be one of find's")
	}
	key, err := base64.RawURLEncoding.Strict().DecodeString(unsafeCursor)
	if err != nil || !strings.HasPrefix(string(key), cursorMark) {
		return refuse("it is none of find's")
	}
	return string(key[len(cursorMark):]), nil
}
