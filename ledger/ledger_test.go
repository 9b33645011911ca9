package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func open(t *testing.T, dir string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func intent(key, request string) Intent {
	return Intent{WorkspaceID: "site", Key: key, RequestHash: "sha256:" + request, ChangeHash: "sha256:c", Plan: json.RawMessage(`{"files":["a"]}`)}
}

func mint(t *testing.T, l *Ledger, in Intent) Operation {
	t.Helper()
	op, minted, err := l.Mint(t.Context(), in)
	if err != nil || !minted {
		t.Fatalf("minted %v, %v", minted, err)
	}
	return op
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What was minted and finished is there again when the ledger is opened anew, with
// its events in order.
func TestOperationSurvives(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	op := mint(t, l, intent("k", "r"))
	if err := l.Finish(t.Context(), op.ID, Applied, json.RawMessage(`{"status":"applied"}`)); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir)
	for name, get := range map[string]func() (Operation, error){
		"by id":  func() (Operation, error) { return l.ByID(t.Context(), op.ID) },
		"by key": func() (Operation, error) { return l.ByKey(t.Context(), "site", "k") },
		"replay": func() (Operation, error) { return l.Replay(t.Context(), "site", "k", "sha256:r") },
	} {
		got, err := get()
		if err != nil || got.ID != op.ID || got.Status != Applied || string(got.Result) != `{"status":"applied"}` || string(got.Plan) != `{"files":["a"]}` {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if len(got.Events) != 2 || got.Events[0].Kind != "minted" || got.Events[1].Kind != "finished" || got.Events[0].Seq >= got.Events[1].Seq {
			t.Errorf("%s: events %+v", name, got.Events)
		}
		if got.Created.After(got.Finished) || time.Since(got.Created) > time.Minute || got.ChangeHash != "sha256:c" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestNothingThere(t *testing.T) {
	l := open(t, t.TempDir())
	_, id := l.ByID(t.Context(), "op_none")
	_, key := l.ByKey(t.Context(), "site", "k")
	_, replay := l.Replay(t.Context(), "site", "k", "sha256:r")
	for _, err := range []error{id, key, replay} {
		if !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	}
	if err := l.Finish(t.Context(), "op_none", Applied, nil); !errors.Is(err, ErrFenced) {
		t.Errorf("to finish what was not minted is %v", err)
	}
}

// A key is a workspace's own, and means one request.
func TestKeyMeansOneRequest(t *testing.T) {
	l := open(t, t.TempDir())
	op := mint(t, l, intent("k", "r"))
	if again, minted, err := l.Mint(t.Context(), intent("k", "r")); err != nil || minted || again.ID != op.ID {
		t.Errorf("the same again: %+v, %v, %v", again, minted, err)
	}
	var conflict *KeyConflict
	if _, minted, err := l.Mint(t.Context(), intent("k", "other")); minted || !errors.As(err, &conflict) || conflict.Operation != op.ID {
		t.Errorf("another request: %v, %v", minted, err)
	}
	if _, err := l.Replay(t.Context(), "site", "k", "sha256:other"); !errors.As(err, &conflict) {
		t.Errorf("another request: %v", err)
	}
	elsewhere := intent("k", "other")
	elsewhere.WorkspaceID = "docs"
	mint(t, l, elsewhere)
	mint(t, l, intent("", "r")) // no key is no key
	mint(t, l, intent("", "r"))
}

// Of a hundred at once, over two open ledgers, one mints.
func TestOneOfManyMints(t *testing.T) {
	dir := t.TempDir()
	ledgers := []*Ledger{open(t, dir), open(t, dir)}
	var all sync.WaitGroup
	var mu sync.Mutex
	minted, ids := 0, map[string]bool{}
	for i := range 100 {
		all.Go(func() {
			op, won, err := ledgers[i%2].Mint(context.Background(), intent("k", "r"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if won {
				minted++
			}
			ids[op.ID] = true
		})
	}
	all.Wait()
	if minted != 1 || len(ids) != 1 {
		t.Errorf("%d minted, ids %v", minted, ids)
	}
}

// An operation ends once, and only by its owner's hand.
func TestOperationEndsOnce(t *testing.T) {
	dir := t.TempDir()
	l, other := open(t, dir), open(t, dir)
	op := mint(t, l, intent("", "r"))
	if err := other.Finish(t.Context(), op.ID, Applied, nil); !errors.Is(err, ErrFenced) {
		t.Errorf("another owner: %v", err)
	}
	if err := l.Finish(t.Context(), op.ID, Minted, nil); err == nil {
		t.Error("finished as minted")
	}
	if err := l.Finish(t.Context(), op.ID, FailedRolledBack, nil); err != nil {
		t.Error(err)
	}
	if err := l.Finish(t.Context(), op.ID, Applied, nil); !errors.Is(err, ErrFenced) {
		t.Errorf("the second end: %v", err)
	}
}

// A later version's ledger, another program's and a damaged one are refused, named
// with what to do, and left as they are.
func TestRefusedLedgersStayAsTheyAre(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, l *Ledger, path string)
		says  string
	}{
		"newer": {func(t *testing.T, l *Ledger, _ string) {
			run(t, l, fmt.Sprintf("PRAGMA user_version = %d", len(migrations)+1))
		}, "use the codespace that made it"},
		"foreign": {func(t *testing.T, l *Ledger, _ string) { run(t, l, "PRAGMA application_id = 7") }, "another program"},
		"flipped": {func(t *testing.T, _ *Ledger, path string) {
			b := contents(t, path)
			for i := 5000; i < len(b); i += 64 {
				b[i] ^= 0xff
			}
			write(t, path, b)
		}, "keep a copy"},
		"not a database": {func(t *testing.T, _ *Ledger, path string) { write(t, path, bytes.Repeat([]byte("text\n"), 100)) }, "keep a copy"},
		"cut short":      {func(t *testing.T, _ *Ledger, path string) { write(t, path, contents(t, path)[:50]) }, "keep a copy"},
		"cut in a page":  {func(t *testing.T, _ *Ledger, path string) { write(t, path, contents(t, path)[:6000]) }, "keep a copy"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "ledger.db")
			l := open(t, dir)
			mint(t, l, intent("k", "r"))
			run(t, l, "PRAGMA wal_checkpoint(TRUNCATE)")
			c.spoil(t, l, path)
			l.Close()
			before := contents(t, path)
			_, err := Open(t.Context(), dir)
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
				t.Fatalf("opened with %v", err)
			}
			if !bytes.Equal(before, contents(t, path)) {
				t.Error("the file was changed")
			}
		})
	}
}

func run(t *testing.T, l *Ledger, statement string) {
	t.Helper()
	if _, err := l.db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A full ledger refuses to mint, and mints again once there is room: nothing is
// restarted, and what it refused is not there.
func TestFullLedgerRefusesAndHeals(t *testing.T) {
	l := open(t, t.TempDir())
	op := mint(t, l, intent("", "r"))
	var pages int
	if err := l.db.QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for extra := range 4 {
		run(t, l, fmt.Sprintf("PRAGMA max_page_count = %d", pages+extra))
		for i := range 200 {
			big := intent(fmt.Sprint(extra, "-", i), "r")
			big.Plan = json.RawMessage(`"` + strings.Repeat("x", 2000) + `"`)
			_, minted, err := l.Mint(t.Context(), big)
			if err == nil {
				continue
			}
			refused++
			var e *Error
			if minted || !errors.As(err, &e) {
				t.Fatalf("minted %v, %v", minted, err)
			}
			if _, err := l.ByKey(t.Context(), "site", big.Key); !errors.Is(err, ErrNotFound) {
				t.Errorf("what was refused is %v", err)
			}
			break
		}
	}
	if refused != 4 {
		t.Errorf("control: refused %d times of 4", refused)
	}
	run(t, l, "PRAGMA max_page_count = 100000")
	mint(t, l, intent("healed", "r"))
	if err := l.Finish(t.Context(), op.ID, Applied, nil); err != nil {
		t.Error(err)
	}
}

// Paths may hold what has a meaning in a DSN.
func TestOddDirectories(t *testing.T) {
	for _, name := range []string{"with space", "100%25", "a?b#c&d=e", "ünï"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		mint(t, open(t, dir), intent("", "r"))
		if _, err := os.Stat(filepath.Join(dir, "ledger.db")); err != nil {
			t.Error(err)
		}
	}
}
