package ledger

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// child is set in a process that the tests start to be killed: it is the directory
// of the ledger.
const child = "LEDGER_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(child); dir != "" {
		work(dir)
	}
	os.Exit(m.Run())
}

// work mints and finishes operations for ever and tells of each once it is
// acknowledged.
func work(dir string) {
	ctx := context.Background()
	l, err := Open(ctx, dir)
	for i := 0; err == nil; i++ {
		var op Operation
		op, _, err = l.Mint(ctx, intent(fmt.Sprint(os.Getpid(), "-", i), "r"))
		fmt.Println("minted", op.ID)
		if i%3 != 2 && err == nil {
			err = l.Finish(ctx, op.ID, Applied, json.RawMessage(`{}`))
			fmt.Println("finished", op.ID)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// killed runs work for a moment, kills it, and returns what was acknowledged: the
// last that is said of each operation.
func killed(t *testing.T, dir string, lines int) map[string]string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for s := bufio.NewScanner(out); s.Scan(); {
		what, id, _ := strings.Cut(s.Text(), " ")
		said[id] = what
		if len(said) == lines {
			cmd.Process.Kill() // what it says until it is gone counts too
		}
	}
	cmd.Wait()
	return said
}

// Nothing that was acknowledged is lost when its process is killed, and the file is
// whole.
func TestKilledLosesNothingAcknowledged(t *testing.T) {
	const rounds = 20
	dir := t.TempDir()
	said := map[string]string{}
	for range rounds {
		for id, what := range killed(t, dir, 1+rand.IntN(40)) {
			said[id] = what
		}
	}
	l := open(t, dir)
	var integrity string
	if err := l.db.QueryRow("PRAGMA integrity_check").Scan(&integrity); err != nil || integrity != "ok" {
		t.Errorf("integrity: %s %v", integrity, err)
	}
	kept := 0
	for id, what := range said {
		op, err := l.ByID(t.Context(), id)
		if err != nil || what == "finished" && op.Status != Applied {
			t.Errorf("%s was %s and is %+v, %v", id, what, op.Status, err)
			continue
		}
		kept++
	}
	t.Logf("%d of %d acknowledged operations kept over %d kills", kept, len(said), rounds)
	if len(said) < rounds {
		t.Error("control: too few were acknowledged")
	}
}

// What a dead owner left is settled once; what a living one has under way is not
// touched; what cannot be settled now stays.
func TestSettlesTheDeadAlone(t *testing.T) {
	dir := t.TempDir()
	living := open(t, dir)
	mine := mint(t, living, intent("", "r"))
	left := map[string]bool{}
	for id, what := range killed(t, dir, 9) {
		if what == "minted" {
			left[id] = true
		}
	}
	l := open(t, dir)
	stuck := errors.New("its journal cannot be read")
	if err := l.Settle(t.Context(), func(Operation) (Status, json.RawMessage, error) { return "", nil, stuck }); !errors.Is(err, stuck) {
		t.Errorf("what cannot be settled: %v", err)
	}
	var asked []string
	settle := func(op Operation) (Status, json.RawMessage, error) {
		asked = append(asked, op.ID)
		return Unknown, json.RawMessage(`{"settled":true}`), nil
	}
	for range 2 {
		if err := l.Settle(t.Context(), settle); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range asked {
		delete(left, id)
	}
	if len(asked) == 0 || len(left) != 0 {
		t.Errorf("settled %v, not settled %v", asked, left)
	}
	for _, id := range asked {
		if op, err := l.ByID(t.Context(), id); err != nil || op.Status != Unknown || len(op.Events) != 2 || id == mine.ID {
			t.Errorf("%+v, %v", op, err)
		}
	}
	if err := living.Finish(t.Context(), mine.ID, Applied, nil); err != nil {
		t.Errorf("the living owner: %v", err)
	}
	if entries, err := os.ReadDir(dir + "/owners"); err != nil || len(entries) != 2 {
		t.Errorf("owners: %v %v", entries, err)
	}
}

// An owner that was taken for dead, and settled, cannot finish what it began.
func TestLateOwnerIsFenced(t *testing.T) {
	dir := t.TempDir()
	late, l := open(t, dir), open(t, dir)
	op := mint(t, late, intent("", "r"))
	if err := late.owner.release(); err != nil { // as if it were gone
		t.Fatal(err)
	}
	err := l.Settle(t.Context(), func(Operation) (Status, json.RawMessage, error) { return FailedRolledBack, nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := late.Finish(t.Context(), op.ID, Applied, nil); !errors.Is(err, ErrFenced) {
		t.Errorf("the late owner: %v", err)
	}
	late.owner = owner{}
}

// Several that open a new ledger at once make one schema.
func TestManyOpenANewOne(t *testing.T) {
	dir := t.TempDir()
	errs := make(chan error)
	for range 20 {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			l, err := Open(ctx, dir)
			if err == nil {
				err = l.Close()
			}
			errs <- err
		}()
	}
	for range 20 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
