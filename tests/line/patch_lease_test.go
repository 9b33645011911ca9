package line_test

import (
	"slices"
	"testing"
	"time"
)

// TestPatchWhileACommandWrites: what looks goes on, what changes waits.
func TestPatchWhileACommandWrites(t *testing.T) {
	dir := workspace(t)
	write(t, dir, disk{"f": "a\n"})
	s, other := start(t, dir), start(t, dir)
	before := time.Now().Add(-time.Millisecond)
	id := s.holding()
	for _, agent := range []*session{s, other} {
		untouched(t, dir, func() {
			agent.file("read", fields{"path": "f"}).wants(t, fields{"content": "a\n"})
			if got, _ := agent.found(map[string]any{}); !slices.Equal(got, []string{"f"}) {
				t.Errorf("found %q", got)
			}
			agent.file("version", fields{"paths": []string{"f"}}).rows("versions")[0].wants(t, fields{"version": versionOf([]byte("a\n"))})
			agent.patch(update(swap), fields{"check_only": true}).wants(t, fields{"status": "checked"})
			a := agent.patch(update(swap), fields{"operation_key": "k"}).refused(t, "WORKSPACE_BUSY")
			a.wants(t, fields{"retryable": true, "operation_id": nil})
			holder := a.below("details").below("holder")
			holder.wants(t, fields{"kind": "exec", "process_id": id, "pid": s.cmd.Process.Pid})
			if since := moment(t, holder, "since"); since.Before(before) || since.After(time.Now()) {
				t.Errorf("held since %v", since)
			}
		})
	}
	s.terminate(id)
	s.exited(id)
	// No wait between what was shown and the patch: that is the promise.
	s.patch(update(swap), fields{"operation_key": "k"}).applied(t).wants(t, fields{"replayed": false})
	reading := s.call("exec_command", fields{"workspace_id": s.workspace, "command": []string{"sleep", "300"}, "access": "read"}).text("process_id")
	s.patch(update("@@\n-b\n+c\n"), nil).applied(t) // a command that only reads holds nothing
	s.terminate(reading)
	s.exited(reading)
}

// A patch that was answered holds nothing any more.
func TestLeaseIsFreeOnceAPatchIsAnswered(t *testing.T) {
	dir := workspace(t)
	write(t, dir, disk{"f": ""})
	s, other := start(t, dir), start(t, dir)
	for range 50 {
		s.patch(appending("x"), nil).applied(t)
		other.patch(appending("y"), nil).applied(t)
		s.patch(update("@@\n-nothing\n+z\n"), nil).refused(t, "INVALID_PATCH")
	}
	other.says("true")
}

// Replays are told while somebody else writes.
func TestReplayWhileACommandWrites(t *testing.T) {
	dir := workspace(t)
	write(t, dir, disk{"f": ""})
	s := start(t, dir)
	s.patch(appending("x"), fields{"operation_key": "k"}).applied(t)
	id := s.holding()
	s.patch(appending("x"), fields{"operation_key": "k"}).applied(t).wants(t, fields{"replayed": true})
	s.patch(appending("y"), fields{"operation_key": "k"}).refused(t, "OPERATION_KEY_CONFLICT")
	s.terminate(id)
	s.exited(id)
}

// A profile that only reads lets nobody patch, nor ask what a patch would do there.
func TestPatchOfAReadOnlyWorkspace(t *testing.T) {
	dir := workspace(t)
	write(t, dir, disk{"f": "a\n"})
	file, _ := registry(t, dir, "read-only")
	s := open(t, nothing, "--config", file)
	untouched(t, dir, func() {
		for _, more := range []fields{nil, {"check_only": true}, {"operation_key": "k"}} {
			s.patch(update(swap), more).refused(t, "UNAUTHORIZED").wants(t, fields{"operation_id": nil, "retryable": false})
		}
		s.patch(around("*** Add File: ../n\n"), nil).refused(t, "UNAUTHORIZED")
		s.file("read", fields{"path": "f"}).wants(t, fields{"content": "a\n"})
	})
}
