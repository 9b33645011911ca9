package line_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

func TestExitCodeAndMergedOutput(t *testing.T) {
	s := start(t, workspace(t))
	st, out := s.run(shell("echo a; echo b >&2; echo c; echo d >&2; exit 7")...)
	st.wants(t, fields{"state": "exited", "termination": "exited", "exit_code": 7, "signal": nil, "eof": true, "output_total": 8, "output_retained_from": 0})
	if out != "a\nb\nc\nd\n" {
		t.Errorf("stdout and stderr in the order written, not %q", out)
	}
}

func TestStatusFields(t *testing.T) {
	s := start(t, workspace(t))
	before := time.Now()
	id := s.started(shell("echo up; until [ -e go ]; do sleep 0.01; done")...)
	s.until(id, "up\n")
	s.status(id).wants(t, fields{"process_id": id, "workspace_id": s.workspace, "state": "running", "termination": nil, "exit_code": nil, "signal": nil,
		"output_total": 3, "eof": false, "ended_at": nil})
	running := time.Now()
	write(t, s.cmd.Args[3], map[string]string{"go": ""})
	st := s.exited(id)
	st.wants(t, fields{"process_id": id, "workspace_id": s.workspace, "state": "exited", "termination": "exited", "exit_code": 0, "eof": true})
	began, ended := moment(t, st, "started_at"), moment(t, st, "ended_at")
	if began.Before(before) || began.After(running) || ended.Before(running) || ended.After(time.Now()) {
		t.Errorf("started %v ended %v; asked at %v, running at %v", began, ended, before, running)
	}
}

func moment(t *testing.T, st answer, key string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, st.text(key))
	must(t, err)
	return at
}

func TestWaitingReadEndsWithTheFirstByte(t *testing.T) {
	s := start(t, workspace(t))
	id := s.started(shell("until [ -e go ]; do sleep 0.01; done; printf x; sleep 60")...)
	answers := make(chan answer)
	began := time.Now()
	go func() {
		a, err := s.ask("read_process", map[string]any{"process_id": id, "wait_ms": 20000})
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}()
	write(t, s.cmd.Args[3], map[string]string{"go": ""})
	(<-answers).wants(t, fields{"chunk": "x", "cursor": 1, "eof": false, "state": "running", "output_lost": 0})
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the answer took %v", took)
	}
	began = time.Now()
	s.call("read_process", map[string]any{"process_id": id, "cursor": 1, "wait_ms": 300}).wants(t, fields{"chunk": "", "cursor": 1, "eof": false})
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("a wait of 300 ms ended after %v with nothing to read", took)
	}
	s.terminate(id)
	s.exited(id)
}

func TestReadAfterTheEnd(t *testing.T) {
	s := start(t, workspace(t))
	id := s.started(shell("echo 0123456789")...)
	s.exited(id)
	for range 2 {
		s.call("read_process", map[string]any{"process_id": id}).wants(t, fields{"chunk": "0123456789\n", "cursor": 11, "eof": true, "state": "exited"})
	}
	s.call("read_process", map[string]any{"process_id": id, "cursor": 4, "max_bytes": 3}).wants(t, fields{"chunk": "456", "cursor": 7, "eof": false})
	s.call("read_process", map[string]any{"process_id": id, "cursor": 11, "wait_ms": 20000}).wants(t, fields{"chunk": "", "cursor": 11, "eof": true})
	beyond := s.call("read_process", map[string]any{"process_id": id, "cursor": 12}).refused(t, "INVALID_ARGUMENT")
	beyond.below("details").wants(t, fields{"output_total": 11})
	s.terminate(id) // ended already
	s.call("read_process", map[string]any{"process_id": "proc_00000000000000000000000000000000"}).refused(t, "PROCESS_NOT_FOUND")
	s.call("process_status", map[string]any{"process_id": "no id at all"}).refused(t, "PROCESS_NOT_FOUND")
}

func TestUsage(t *testing.T) {
	s := startProbing(t, workspace(t))
	st, _ := s.run(probe(t, "burn", "200")...)
	if cpu := st.below("usage").number("cpu_ms"); cpu < 190 || cpu > 1000 {
		t.Errorf("200 ms of processor time are reported as %d ms", cpu)
	}
	st, _ = s.run("true")
	if cpu := st.below("usage").number("cpu_ms"); cpu > 150 {
		t.Errorf("true took %d ms of processor time", cpu)
	}
	const size = 50_000_000
	st, _ = s.run(probe(t, "hold", fmt.Sprint(size))...)
	if peak := st.below("usage").number("peak_memory_bytes"); peak < size || peak > 5*size {
		t.Errorf("%d bytes of memory are reported as %d", size, peak)
	}
}

func TestReceipt(t *testing.T) {
	s := start(t, workspace(t))
	first, _ := s.run("true")
	second, _ := s.run("false")
	receipt := first.below("receipt")
	if !regexp.MustCompile("^sha256:[0-9a-f]{64}$").MatchString(receipt.text("digest")) {
		t.Errorf("digest %q", receipt.text("digest"))
	}
	layers, _ := receipt.fields["layers"].([]any)
	if len(layers) == 0 {
		t.Error("a receipt without layers")
	}
	written, err := json.Marshal(layers)
	must(t, err)
	if sum := sha256.Sum256(written); receipt.text("digest") != "sha256:"+hex.EncodeToString(sum[:]) {
		t.Errorf("digest %s is not that of the layers %s", receipt.text("digest"), written)
	}
	if fmt.Sprint(first.below("receipt")) != fmt.Sprint(second.below("receipt")) {
		t.Errorf("two commands of one workspace have the receipts %v and %v", first.below("receipt"), second.below("receipt"))
	}
}

// What a command makes belongs on disk to whom the workspace belongs to.
func TestFilesBelongToTheOwnerOfTheRoot(t *testing.T) {
	dir := workspace(t)
	ownedBy(t, dir, os.Geteuid(), os.Getegid())
	if os.Geteuid() == 0 {
		other := workspace(t)
		must(t, os.Chown(other, 23456, 34567))
		ownedBy(t, other, 23456, 34567)
	}
}

func ownedBy(t *testing.T, dir string, uid, gid int) {
	t.Helper()
	s := start(t, dir)
	defer s.close()
	if out := s.says(shell("mkdir d && echo x > d/f && ln -s f d/l && stat -c %u:%g . d/f")...); out != "1000:1000\n1000:1000\n" {
		t.Errorf("inside the owner is %q", out)
	}
	for _, name := range []string{"d", "d/f", "d/l"} {
		if st := lstat(t, filepath.Join(dir, name)); int(st.Uid) != uid || int(st.Gid) != gid {
			t.Errorf("%s belongs to %d:%d, the root to %d:%d", name, st.Uid, st.Gid, uid, gid)
		}
	}
}
