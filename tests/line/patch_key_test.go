package line_test

import (
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// appending is a patch that shows how often it was applied.
func appending(word string) string { return update("@@\n+" + word + "\n") }

// tally is how calls of apply_patch ended.
type tally struct {
	mu    sync.Mutex
	ended map[string]int
	ids   map[string]bool
}

func newTally() *tally { return &tally{ended: map[string]int{}, ids: map[string]bool{}} }

// patch sends a patch and counts how it ended, from any goroutine.
func (y *tally) patch(s *session, args fields) answer {
	all := fields{"workspace_id": s.workspace}
	maps.Copy(all, args)
	a, err := s.ask("apply_patch", all)
	y.mu.Lock()
	defer y.mu.Unlock()
	switch {
	case err != nil:
		y.ended["lost: "+err.Error()]++
	case a.isError:
		y.ended[a.text("code")]++
	default:
		y.ended[a.text("status")+" "+a.text("replayed")]++
		y.ids[a.text("operation_id")] = true
	}
	return a
}

// TestOneKeyFromAHundredCalls: a patch with a key is applied once.
func TestOneKeyFromAHundredCalls(t *testing.T) {
	dir := workspace(t)
	write(t, dir, disk{"f": ""})
	s := start(t, dir)
	y := newTally()
	var calls sync.WaitGroup
	for range 100 {
		calls.Go(func() { y.patch(s, fields{"patch": appending("once"), "operation_key": "key"}) })
	}
	calls.Wait()
	if want := map[string]int{"applied false": 1, "applied true": 99}; !maps.Equal(y.ended, want) || len(y.ids) != 1 {
		t.Errorf("they ended %v, want %v; operations %v", y.ended, want, y.ids)
	}
	if got := contents(t, filepath.Join(dir, "f")); got != "once\n" {
		t.Errorf("the file is %q", got)
	}
}

// Two servers know nothing of each other but what is in the ledger and who holds the
// lease.
func TestOneKeyFromTwoServers(t *testing.T) {
	dir := workspace(t)
	write(t, dir, disk{"f": ""})
	servers := []*session{start(t, dir), start(t, dir)}
	var want strings.Builder
	sum := map[string]int{}
	for round := range 40 {
		word := "round " + shown(float64(round))
		want.WriteString(word + "\n")
		y := newTally()
		args := fields{"patch": appending(word), "operation_key": word}
		var calls sync.WaitGroup
		for _, s := range servers {
			for range 5 {
				calls.Go(func() { y.patch(s, args) })
			}
		}
		calls.Wait()
		for how, n := range y.ended {
			sum[how] += n
		}
		if y.ended["applied false"] != 1 || len(y.ids) != 1 {
			t.Errorf("round %d: %v, operations %v", round, y.ended, y.ids)
		}
		for _, s := range servers { // whoever was turned away learns it now
			s.file("apply_patch", args).wants(t, fields{"status": "applied", "replayed": true})
		}
	}
	t.Logf("10 calls in each of 40 rounds: %v", sum)
	for how := range sum {
		if how != "applied false" && how != "applied true" && how != "WORKSPACE_BUSY" {
			t.Errorf("%d calls ended as %q; stderr: %s%s", sum[how], how, servers[0].stderr.tail(), servers[1].stderr.tail())
		}
	}
	if got := contents(t, filepath.Join(dir, "f")); got != want.String() {
		t.Errorf("the file is %q, want %q", got, want.String())
	}
}

// A key stands for one request.
func TestKeyOfAnotherRequest(t *testing.T) {
	dir := workspace(t)
	write(t, dir, disk{"f": "", "g": ""})
	s := start(t, dir)
	id := s.patch(appending("one"), fields{"operation_key": "k"}).applied(t).text("operation_id")
	for name, args := range map[string]fields{
		"another patch": {"patch": appending("two")}, "another guard": {"patch": appending("one"), "expected_versions": map[string]string{"g": versionOf(nil)}},
		"what is no patch": {"patch": "nothing"},
	} {
		args["operation_key"] = "k"
		untouched(t, dir, func() {
			s.file("apply_patch", args).refused(t, "OPERATION_KEY_CONFLICT").wants(t, fields{"operation_id": id})
		})
		if t.Failed() {
			t.Fatal(name)
		}
	}
	s.patch(appending("one"), fields{"operation_key": "k"}).applied(t).wants(t, fields{"replayed": true, "operation_id": id})
	s.patch(appending("one"), fields{"operation_key": "K"}).applied(t).wants(t, fields{"replayed": false})
	other := start(t, workspace(t)) // a key is of one workspace
	other.patch(around("*** Add File: f\n"), fields{"operation_key": "k"}).applied(t).wants(t, fields{"replayed": false})
}

// What was refused before it was recorded has not used its key up.
func TestKeyOfARefusal(t *testing.T) {
	dir := workspace(t)
	write(t, dir, disk{"f": ""})
	s := start(t, dir)
	args := fields{"operation_key": "k"}
	s.patch(update("@@\n-x\n+y\n"), args).refused(t, "INVALID_PATCH")
	s.call("operation_status", fields{"workspace_id": s.workspace, "operation_key": "k"}).refused(t, "OPERATION_NOT_FOUND")
	s.patch(appending("one"), args).applied(t).wants(t, fields{"replayed": false})
}

// TestOperationStatus asks for a patch by both its names, of the server that applied
// it and of a later one.
func TestOperationStatus(t *testing.T) {
	dir := workspace(t)
	write(t, dir, disk{"f": "a\n", "m": "x"})
	s := start(t, dir)
	before := time.Now().Add(-time.Millisecond)
	first := s.patch(around("*** Update File: f\n"+swap+"*** Add File: Makefile\n*** Update File: m\n*** Move to: n\n"), fields{"operation_key": "k"}).applied(t)
	after := time.Now()
	id := first.text("operation_id")
	for range 2 {
		for _, name := range []fields{{"operation_id": id}, {"operation_key": "k", "workspace_id": s.workspace}} {
			op := s.call("operation_status", name)
			op.saidTwice(t)
			op.wants(t, fields{"kind": "patch", "status": "applied", "operation_id": id, "workspace": s.workspace, "error": nil, "truncated": false,
				"files": first.text("files"), "changes": first.text("changes"), "handoff": first.text("handoff"), "handoff_total": 1})
			events := op.rows("events")
			if len(events) != 2 || events[0].text("kind") != "minted" || events[1].text("kind") != "finished" || events[0].number("seq") >= events[1].number("seq") {
				t.Errorf("events %v", op.fields["events"])
			}
			if minted, finished := moment(t, op, "created_at"), moment(t, op, "finished_at"); minted.Before(before) || finished.Before(minted) || finished.After(after) {
				t.Errorf("from %v to %v, and it was called between %v and %v", minted, finished, before, after)
			}
		}
		s.close()
		s = start(t, dir)
	}
	s.file("apply_patch", fields{"patch": "other", "operation_key": "k"}).refused(t, "OPERATION_KEY_CONFLICT")
}

func TestOperationsThatAreNone(t *testing.T) {
	s := start(t, workspace(t))
	id := s.patch(around("*** Add File: f\n"), fields{"operation_key": "k"}).applied(t).text("operation_id")
	for _, none := range []string{"", " ", "op_", "op", id + " ", " " + id, id[:len(id)-1], strings.ToLower(id) + "x", "k", "%", "_", "*", "' OR '1'='1", "../" + id,
		"proc_x", "\n", "\u202e", strings.Repeat("x", 100_000)} {
		s.call("operation_status", fields{"operation_id": none}).refused(t, "OPERATION_NOT_FOUND")
	}
	for _, args := range []fields{{"operation_key": "other", "workspace_id": s.workspace}, {"operation_key": "k", "workspace_id": "nowhere"}, {"operation_key": id, "workspace_id": s.workspace}} {
		s.call("operation_status", args).refused(t, "OPERATION_NOT_FOUND")
	}
	for _, args := range []fields{{}, {"workspace_id": s.workspace}, {"operation_key": "k"}, {"operation_id": id, "operation_key": "k"},
		{"operation_id": id, "operation_key": "k", "workspace_id": s.workspace}, {"operation_id": id, "cursor": "1"}, {"operation_id": id, "cursor": "x"}} {
		s.call("operation_status", args).refused(t, "INVALID_ARGUMENT")
	}
	s.call("operation_status", fields{"operation_id": id}).wants(t, fields{"status": "applied"}) // the control
}
