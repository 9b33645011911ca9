package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxFileBytes bounds a registry file.
const maxFileBytes = 1 << 20

const trustedAllowed = "a regular file of root's or your own that nobody else can write, in directories of which the same holds " +
	"(or sticky ones of root's)"

// readTrusted reads a registry file that nobody but root and we can have
// written, and says where it is.
func readTrusted(unsafePath string) ([]byte, location, error) {
	at, err := trustedPlace(unsafePath)
	var text []byte
	if err == nil {
		text, err = at.read()
	}
	if f := (*flaw)(nil); errors.As(err, &f) {
		err = f.filled(quote(unsafePath), trustedAllowed)
	}
	if err != nil {
		return nil, location{}, fmt.Errorf("%s: %w", unsafePath, err)
	}
	return text, at, nil
}

// trustedPlace is where the file is named, once every directory above it is
// known to be safe.
func trustedPlace(unsafePath string) (location, error) {
	absolute, err := filepath.Abs(unsafePath)
	if err != nil {
		return location{}, err
	}
	named, base := filepath.Split(absolute)
	named = filepath.Clean(named)
	dir, f := locate(named)
	if f != nil {
		return location{}, f
	}
	if named != dir.path {
		return location{}, &flaw{
			found: "a symbolic link in " + quote(named),
			next:  "name " + quote(filepath.Join(dir.path, base)),
		}
	}
	path := dir.path
	for _, info := range dir.chain {
		if f := trustedDirectory(info, path); f != nil {
			return location{}, f
		}
		path = filepath.Dir(path)
	}
	return dir.beneath([]string{base}), nil
}

// read reads the file at l and completes l with its identity. The directories
// are safe by now; the flags are for a link, pipe or terminal that the operator
// named by mistake.
func (l *location) read() ([]byte, error) {
	file, err := os.OpenFile(l.path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, &flaw{found: "a symbolic link", next: "name the file it points to"}
	}
	if err != nil {
		return nil, unreachable(l.path, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if f := trustedFile(info, l.path); f != nil {
		return nil, f
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFileBytes { // it grew
		return nil, tooLong(int64(len(text)))
	}
	l.chain, l.found = append([]fs.FileInfo{info}, l.chain...), true
	return text, nil
}

func trustedDirectory(info fs.FileInfo, path string) *flaw {
	if uid := owner(info); !trustedOwner(uid) {
		return &flaw{found: fmt.Sprintf("%s owned by uid %d", path, uid), next: "chown it to root or move the file"}
	}
	sticky := info.Mode()&fs.ModeSticky != 0 && owner(info) == 0
	if info.Mode().Perm()&0o022 != 0 && !sticky {
		return &flaw{found: fmt.Sprintf("%s with mode %#o", path, info.Mode().Perm()), next: "run: chmod go-w " + path}
	}
	return nil
}

func trustedFile(info fs.FileInfo, path string) *flaw {
	stat := info.Sys().(*syscall.Stat_t) // always so on Linux
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return &flaw{found: "a " + kindOf(mode), next: "name a file"}
	case !trustedOwner(stat.Uid):
		return &flaw{found: fmt.Sprintf("a file owned by uid %d", stat.Uid), next: "run: chown root " + path}
	case mode.Perm()&0o022 != 0:
		return &flaw{found: fmt.Sprintf("mode %#o", mode.Perm()), next: "run: chmod go-w " + path}
	case stat.Nlink != 1:
		return &flaw{
			found: fmt.Sprintf("a file with %d names (hard links), of which a sandbox may hold one", stat.Nlink),
			next:  "copy it to a file of its own",
		}
	case info.Size() > maxFileBytes:
		return tooLong(info.Size())
	}
	return nil
}

func tooLong(bytes int64) *flaw {
	return &flaw{
		found:   fmt.Sprintf("%d bytes", bytes),
		allowed: fmt.Sprintf("at most %d bytes", maxFileBytes),
		next:    "shorten the file",
	}
}

func trustedOwner(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	default:
		return "socket or device"
	}
}
