package ledger

import (
	"context"
	"database/sql"
	"fmt"
)

// migrations make each schema from the one before; the number of those done is
// user_version. One that was released is never changed.
var migrations = []string{
	`CREATE TABLE operations (
		operation_id  TEXT PRIMARY KEY,
		workspace_id  TEXT NOT NULL,
		operation_key TEXT,          -- of the client, to be recognised by
		request_hash  TEXT NOT NULL, -- of all that decides what the operation does
		change_hash   TEXT NOT NULL, -- of the whole planned change set
		owner         TEXT NOT NULL, -- whose lock says that it is still at work
		status        TEXT NOT NULL CHECK (status IN ('minted','applied','rejected','failed_rolled_back','failed_partial','unknown')),
		created       INTEGER NOT NULL, -- nanoseconds after 1970
		finished      INTEGER,
		plan          BLOB NOT NULL, -- JSON: the files and their hashes before and after
		result        BLOB           -- JSON: what was answered
	) STRICT;
	CREATE UNIQUE INDEX operations_key ON operations (workspace_id, operation_key) WHERE operation_key IS NOT NULL;
	CREATE INDEX operations_open ON operations (owner) WHERE status = 'minted';
	CREATE TABLE events (
		seq          INTEGER PRIMARY KEY, -- the order; clocks jump
		operation_id TEXT NOT NULL REFERENCES operations,
		kind         TEXT NOT NULL CHECK (kind IN ('minted','finished')),
		at           INTEGER NOT NULL -- nanoseconds after 1970
	) STRICT;
	CREATE INDEX events_operation ON events (operation_id);`,
}

// migrate brings the schema up to date. Each step counts whole or not at all.
func migrate(ctx context.Context, db *sql.DB, path string) error {
	for {
		done, err := step(ctx, db, path)
		if done || err != nil {
			return err
		}
	}
}

// step does one migration. It reads the version in the transaction that changes it:
// another process may be at it too.
func step(ctx context.Context, db *sql.DB, path string) (done bool, err error) {
	failed := func(err error) error {
		return &Error{Path: path, What: "cannot be brought to the schema of this version", Err: err}
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, failed(err)
	}
	defer tx.Rollback()
	var version int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return false, failed(err)
	}
	if version >= len(migrations) {
		return true, newer(path, version)
	}
	next := fmt.Sprintf("%s; PRAGMA application_id = %d; PRAGMA user_version = %d", migrations[version], applicationID, version+1)
	if _, err := tx.ExecContext(ctx, next); err != nil {
		return false, failed(err)
	}
	if err := tx.Commit(); err != nil {
		return false, failed(err)
	}
	return false, nil
}
