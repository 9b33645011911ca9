package ledger

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// owner is a process's place beside the ledger. Its lock is the only thing that
// says whether it lives: a pid is used again and a time can jump.
type owner struct {
	id   string
	lock *os.File
}

func newOwner(dir string) (owner, error) {
	owners := filepath.Join(dir, "owners")
	if err := os.MkdirAll(owners, 0o700); err != nil {
		return owner{}, err
	}
	var b [12]byte
	rand.Read(b[:])
	o := owner{id: hex.EncodeToString(b[:])}
	f, err := os.OpenFile(ownerFile(dir, o.id), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return owner{}, err
	}
	if err := flock(f); err != nil {
		f.Close()
		return owner{}, err
	}
	o.lock = f
	return o, nil
}

func ownerFile(dir, id string) string { return filepath.Join(dir, "owners", id+".lock") }

// release gives the place up. The file goes first: who opened it before that and now
// gets the lock finds what it would have found anyway, a dead owner.
func (o owner) release() error {
	if o.lock == nil {
		return nil
	}
	return errors.Join(os.Remove(o.lock.Name()), o.lock.Close())
}

// errAlive says that an owner's lock is held.
var errAlive = errors.New("its owner is alive")

// claim takes the lock of an owner that is gone and holds it until done is called:
// of several that settle what it left only one does. An owner without a file has
// ended in order.
func claim(dir, id string) (done func(), err error) {
	if id == "" || filepath.Base(id) != id {
		return nil, fmt.Errorf("cannot claim owner %q: no such name", id)
	}
	f, err := os.OpenFile(ownerFile(dir, id), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		os.Remove(f.Name())
		f.Close()
	}, nil
}

func flock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return errAlive
	}
	if err != nil {
		return &fs.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	return nil
}
