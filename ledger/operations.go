package ledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Status is how far an operation has come.
type Status string

// Minted is the only status that another follows.
const (
	Minted           Status = "minted" // it may be under way, or its process died
	Applied          Status = "applied"
	Rejected         Status = "rejected"
	FailedRolledBack Status = "failed_rolled_back"
	FailedPartial    Status = "failed_partial"
	Unknown          Status = "unknown"
)

// Intent is what is to be done, complete before any file is touched.
type Intent struct {
	WorkspaceID string
	Key         string          // the client's operation_key, "" for none
	RequestHash string          // of all that decides what is done: the same key with another is a conflict
	ChangeHash  string          // of the whole planned change set
	Plan        json.RawMessage // the files with their hashes before and after
}

// Operation is one row with its events.
type Operation struct {
	ID string
	Intent
	Owner    string // whose lock says that it is still at work
	Status   Status
	Created  time.Time
	Finished time.Time       // zero while minted
	Result   json.RawMessage // what was answered; nil while minted
	Events   []Event
}

// Event is a step of an operation. Seq orders the events of a ledger, whatever the
// clock did.
type Event struct {
	Seq  int64
	Kind string // "minted", "finished"
	At   time.Time
}

// ErrNotFound says that there is no such operation.
var ErrNotFound = errors.New("no such operation")

// KeyConflict is a key that was used for another request.
type KeyConflict struct{ Operation string }

func (k *KeyConflict) Error() string {
	return "this operation_key belongs to operation " + k.Operation + ", whose request was another"
}

// ErrFenced says that an operation is not this owner's to finish: it has ended, or
// was settled by another after this owner was taken for dead.
var ErrFenced = errors.New("the operation is not ours to finish")

// Replay returns the operation that a key names, ErrNotFound if there is none yet,
// or a *KeyConflict.
func (l *Ledger) Replay(ctx context.Context, workspaceID, key, requestHash string) (Operation, error) {
	op, err := l.get(ctx, "workspace_id = ? AND operation_key = ?", workspaceID, key)
	if err == nil && op.RequestHash != requestHash {
		return Operation{}, &KeyConflict{op.ID}
	}
	return op, err
}

// ByID returns an operation.
func (l *Ledger) ByID(ctx context.Context, id string) (Operation, error) {
	return l.get(ctx, "operation_id = ?", id)
}

// ByKey returns the operation that a key of a workspace names.
func (l *Ledger) ByKey(ctx context.Context, workspaceID, key string) (Operation, error) {
	return l.get(ctx, "workspace_id = ? AND operation_key = ?", workspaceID, key)
}

// Mint records an intent. Once it has returned, the intent survives a power cut; if
// it fails nothing may be done. A key that is taken mints nothing: minted is false,
// and the operation is the one that has it; another request with it is a
// *KeyConflict. Events are not filled in. With any other error the operation has at
// most an ID: under that the intent may be recorded all the same.
func (l *Ledger) Mint(ctx context.Context, in Intent) (op Operation, minted bool, err error) {
	var b [16]byte
	rand.Read(b[:])
	id, now := "op_"+hex.EncodeToString(b[:]), time.Now()
	err = l.inTx(ctx, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, `INSERT INTO operations (operation_id, workspace_id, operation_key, request_hash, change_hash, owner, status, created, plan)
			VALUES (?, ?, ?, ?, ?, ?, 'minted', ?, ?) ON CONFLICT (workspace_id, operation_key) WHERE operation_key IS NOT NULL DO NOTHING`,
			id, in.WorkspaceID, sql.NullString{String: in.Key, Valid: in.Key != ""}, in.RequestHash, in.ChangeHash, l.owner.id, now.UnixNano(), []byte(in.Plan))
		if err != nil {
			return l.failed(err)
		}
		if n, err := r.RowsAffected(); err != nil || n == 0 {
			return l.failed(err)
		}
		minted = true
		return l.event(ctx, tx, id, Event{Kind: "minted", At: now})
	})
	if err != nil {
		return Operation{ID: id}, false, err
	}
	if minted {
		return Operation{ID: id, Intent: in, Owner: l.owner.id, Status: Minted, Created: now}, true, nil
	}
	if op, err = l.Replay(ctx, in.WorkspaceID, in.Key, in.RequestHash); err != nil {
		return Operation{}, false, err
	}
	return op, false, nil
}

func (l *Ledger) event(ctx context.Context, tx *sql.Tx, id string, e Event) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO events (operation_id, kind, at) VALUES (?, ?, ?)", id, e.Kind, e.At.UnixNano())
	return l.failed(err)
}

// Finish records how an operation of this owner ended and what was answered. It
// happens once: ErrFenced says that it is not this owner's any more.
func (l *Ledger) Finish(ctx context.Context, id string, s Status, result json.RawMessage) error {
	return l.finish(ctx, id, l.owner.id, outcome{s, result})
}

type outcome struct {
	status Status
	result json.RawMessage
}

func (l *Ledger) finish(ctx context.Context, id, owner string, o outcome) error {
	if o.status == Minted {
		return errors.New("cannot finish an operation as minted")
	}
	now := time.Now()
	return l.inTx(ctx, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, "UPDATE operations SET status = ?, finished = ?, result = ? WHERE operation_id = ? AND owner = ? AND status = 'minted'",
			string(o.status), now.UnixNano(), []byte(o.result), id, owner)
		if err != nil {
			return l.failed(err)
		}
		n, err := r.RowsAffected()
		if err != nil {
			return l.failed(err)
		}
		if n != 1 {
			return fmt.Errorf("%s: %w", id, ErrFenced)
		}
		return l.event(ctx, tx, id, Event{Kind: "finished", At: now})
	})
}

// Settle finishes what dead owners left. settle looks at the journal and the disk and
// says how an operation ended; it runs while the owner's lock is held here, so that
// one process does it. Operations of living owners are left alone. What settle cannot
// say now (an error) stays for the next time.
func (l *Ledger) Settle(ctx context.Context, settle func(Operation) (Status, json.RawMessage, error)) error {
	owners, err := l.openOwners(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range owners {
		done, err := claim(l.dir, id)
		if errors.Is(err, errAlive) {
			continue
		}
		if err == nil {
			err = l.settleOwner(ctx, id, settle)
			done()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (l *Ledger) settleOwner(ctx context.Context, owner string, settle func(Operation) (Status, json.RawMessage, error)) error {
	ids, err := l.strings(ctx, "SELECT operation_id FROM operations WHERE status = 'minted' AND owner = ? ORDER BY created, operation_id", owner)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		op, err := l.ByID(ctx, id)
		if err == nil {
			var o outcome
			o.status, o.result, err = settle(op)
			if err == nil {
				err = l.finish(ctx, id, owner, o)
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// openOwners are the others that have operations under way.
func (l *Ledger) openOwners(ctx context.Context) ([]string, error) {
	return l.strings(ctx, "SELECT DISTINCT owner FROM operations WHERE status = 'minted' AND owner <> ?", l.owner.id)
}

func (l *Ledger) strings(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := l.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, l.failed(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, l.failed(err)
		}
		out = append(out, s)
	}
	return out, l.failed(rows.Err())
}

// get reads one operation and its events as of one moment.
func (l *Ledger) get(ctx context.Context, where string, args ...any) (op Operation, err error) {
	err = l.inTx(ctx, func(tx *sql.Tx) error {
		var key sql.NullString
		var created int64
		var finished sql.NullInt64
		var plan, result []byte
		row := tx.QueryRowContext(ctx, `SELECT operation_id, workspace_id, operation_key, request_hash, change_hash, owner, status, created, finished, plan, result
			FROM operations WHERE `+where, args...)
		err := row.Scan(&op.ID, &op.WorkspaceID, &key, &op.RequestHash, &op.ChangeHash, &op.Owner, &op.Status, &created, &finished, &plan, &result)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrNotFound
		}
		if err != nil {
			return l.failed(err)
		}
		op.Key, op.Created, op.Plan, op.Result = key.String, time.Unix(0, created), plan, result
		if finished.Valid {
			op.Finished = time.Unix(0, finished.Int64)
		}
		op.Events, err = l.events(ctx, tx, op.ID)
		return err
	})
	return op, err
}

func (l *Ledger) events(ctx context.Context, tx *sql.Tx, id string) ([]Event, error) {
	rows, err := tx.QueryContext(ctx, "SELECT seq, kind, at FROM events WHERE operation_id = ? ORDER BY seq", id)
	if err != nil {
		return nil, l.failed(err)
	}
	defer rows.Close()
	var out []Event
	for rows.Next() {
		var e Event
		var at int64
		if err := rows.Scan(&e.Seq, &e.Kind, &at); err != nil {
			return nil, l.failed(err)
		}
		e.At = time.Unix(0, at)
		out = append(out, e)
	}
	return out, l.failed(rows.Err())
}
