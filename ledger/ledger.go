// Package ledger records patches for good: what was about to be done before any
// file is touched, and how it ended. It never holds a command.
//
// A ledger is one SQLite file in a state directory, in WAL mode with
// synchronous=FULL: what was answered survives a power cut. Several processes may
// share it. Each holds the lock of an owner file beside it for as long as it lives,
// and an unfinished operation is settled by others only once its owner's lock is
// free:
//
//	ledger.db            operations and their events
//	owners/<id>.lock     exclusively locked by the process that has this id
package ledger

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite" // the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// busyTimeout is how long a statement waits for another process's transaction.
const busyTimeout = 10 * time.Second

// openAgain is how long an opening waits for a ledger that another process is making.
const openAgain = 10 * time.Millisecond

// Ledger is one open ledger. Its methods may be called concurrently.
type Ledger struct {
	db    *sql.DB
	dir   string
	owner owner
}

// Error says why a ledger cannot be used. Nothing that depends on it may begin.
type Error struct {
	Path string // of the file; the operator's business, not a client's
	What string
	Next string
	Err  error // nil if there is no cause beneath
}

func (e *Error) Error() string {
	s := "ledger " + e.Path + ": " + e.What
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Next != "" {
		s += "; " + e.Next
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Exists says whether there may be something in the ledger of dir: one that is not there
// is made by Open.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, fileName))
	return !errors.Is(err, fs.ErrNotExist)
}

// fileName is that of the database in a state directory.
const fileName = "ledger.db"

// Open opens the ledger in dir, which must exist, and makes it if there is none. One
// that a later version made, or that is damaged, is refused and left as it is.
func Open(ctx context.Context, dir string) (*Ledger, error) {
	for deadline := time.Now().Add(busyTimeout); ; {
		l, err := openOnce(ctx, dir)
		if !locked(err) || time.Now().After(deadline) {
			return l, err
		}
		select {
		case <-time.After(openAgain):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// locked: another process is making the ledger. SQLite does not wait for one that
// turns it to WAL, whatever its timeout is.
func locked(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

func openOnce(ctx context.Context, dir string) (*Ledger, error) {
	path := filepath.Join(dir, fileName)
	if err := readable(path); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", source(path))
	if err != nil {
		return nil, &Error{Path: path, What: "cannot be opened", Err: err}
	}
	db.SetMaxOpenConns(1) // one writer; a read waits for at most one transaction
	l := &Ledger{db: db, dir: dir}
	if err := l.prepare(ctx, path); err != nil {
		db.Close()
		return nil, err
	}
	return l, nil
}

func (l *Ledger) prepare(ctx context.Context, path string) error {
	if err := check(ctx, l.db, path); err != nil {
		return err
	}
	if err := migrate(ctx, l.db, path); err != nil {
		return err
	}
	var err error
	if l.owner, err = newOwner(l.dir); err != nil {
		return &Error{Path: path, What: "cannot have an owner", Err: err}
	}
	return nil
}

// Close ends the use of the ledger. What this owner has not finished may from now
// on be settled by another.
func (l *Ledger) Close() error { return errors.Join(l.db.Close(), l.owner.release()) }

// source is the DSN. FULL, because a patch that was answered must survive a power
// cut; immediate, because a deferred transaction that turns to writing can fail
// where waiting would have helped.
func source(path string) string {
	v := url.Values{"_txlock": {"immediate"}, "_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)",
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds())}}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: v.Encode()}).String()
}

// The header of a database (sqlite.org/fileformat2.html, 1.3).
const (
	headerBytes     = 100
	userVersionAt   = 60
	applicationAt   = 68
	magic           = "SQLite format 3\x00"
	applicationID   = 0x434f4453 // "CODS"
	recoveryCommand = "keep a copy, then: sqlite3 ledger.db .recover | sqlite3 new.db, and look before you put it in place"
	newerCommand    = "use the codespace that made it or a later one"
	foreignAdvice   = "it is not a ledger of codespace; name another state directory"
)

// readable looks at the file before SQLite does, which would change it: a damaged,
// foreign or newer one must stay as it is.
func readable(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &Error{Path: path, What: "cannot be read", Err: err}
	}
	defer f.Close()
	header := make([]byte, headerBytes)
	n, err := f.ReadAt(header, 0)
	switch {
	case n == 0: // made, and not written yet
		return nil
	case n < headerBytes || string(header[:len(magic)]) != magic:
		return &Error{Path: path, What: "is damaged: it does not begin as a database", Next: recoveryCommand, Err: err}
	case binary.BigEndian.Uint32(header[applicationAt:]) != applicationID && binary.BigEndian.Uint32(header[userVersionAt:]) != 0:
		return &Error{Path: path, What: "belongs to another program", Next: foreignAdvice}
	}
	return newer(path, int(binary.BigEndian.Uint32(header[userVersionAt:])))
}

func newer(path string, version int) error {
	if version <= len(migrations) {
		return nil
	}
	return &Error{Path: path, What: fmt.Sprintf("has schema %d, this version knows %d", version, len(migrations)), Next: newerCommand}
}

// check wants a whole database that keeps what it says.
func check(ctx context.Context, db *sql.DB, path string) error {
	for _, c := range []struct{ pragma, want, what string }{
		{"quick_check(1)", "ok", "is damaged"},
		{"journal_mode", "wal", "cannot be kept in WAL mode"},
		{"synchronous", "2", "is not written through (synchronous is not FULL)"},
	} {
		var got string
		err := db.QueryRowContext(ctx, "PRAGMA "+c.pragma).Scan(&got)
		if err == nil && got == c.want {
			continue
		}
		e := &Error{Path: path, What: c.what, Err: err}
		if err == nil {
			e.Err = errors.New("PRAGMA " + c.pragma + " answers " + got)
		}
		if c.pragma == "quick_check(1)" {
			e.Next = recoveryCommand
		}
		return e
	}
	return nil
}

// inTx runs f in one transaction: all of it counts, or none.
func (l *Ledger) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return l.failed(err)
	}
	defer tx.Rollback() // nothing after Commit
	if err := f(tx); err != nil {
		return err
	}
	return l.failed(tx.Commit())
}

// failed is an error of the database itself.
func (l *Ledger) failed(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{Path: filepath.Join(l.dir, fileName), What: "cannot be used now", Err: err}
}
