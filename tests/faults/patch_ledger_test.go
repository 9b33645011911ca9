package faults_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"codespace/tests/need"

	"golang.org/x/sys/unix"
)

// newLedgerPlace is a place whose state directory is a small file system of its own.
func newLedgerPlace(t testing.TB) patchPlace {
	t.Helper()
	p := newPatchPlace(t)
	mountTmpfs(t, p.state, 1024)
	return p
}

func (p patchPlace) filler() string { return filepath.Join(p.state, "filler") }

// fill leaves room for so many pages of 4 KiB in the state directory.
func (p patchPlace) fill(t testing.TB, pages int64) {
	t.Helper()
	f, err := os.Create(p.filler())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	var size int64
	for err == nil {
		_, err = f.Write(page)
		size += int64(len(page))
	}
	size -= int64(len(page))
	if !errors.Is(err, unix.ENOSPC) || size < pages*4096 {
		t.Fatalf("control: full after %d bytes: %v", size, err)
	}
	if err := f.Truncate(size - pages*4096); err != nil {
		t.Fatal(err)
	}
}

func (p patchPlace) makeRoom(t testing.TB) {
	t.Helper()
	if err := os.Remove(p.filler()); err != nil {
		t.Fatal(err)
	}
}

// TestLedgerIsFull sends a patch to ledgers with more and more room: it is refused
// before any file is touched, or its end is told once there is room; no restart.
func TestLedgerIsFull(t *testing.T) {
	need.Root(t)
	var c tally
	for pages := range int64(20) {
		c.run(t, fmt.Sprintf("%d pages free", pages), func(t *testing.T) string {
			p := newLedgerPlace(t)
			s := p.mcp(t)
			p.wantNextPatch(t, s) // the ledger is there
			p.fill(t, pages)
			var r result
			within(promised, func() bool { r = s.patch(t, thePatch, "key"); return r.code() != "WORKSPACE_BUSY" })
			word := said(r)
			if word != applied && r.code() != noLedger {
				t.Errorf("the answer: %v", r)
			}
			if word == notKnown {
				p.wantDisk(t, applied)
			} else {
				p.wantDisk(t, word)
			}
			p.makeRoom(t)
			later := p.wantSettled(t, s, "key")
			if word == applied && later != applied || word == noLedger && later == applied {
				t.Errorf("operation_status says %s after the answer %v", later, r)
			}
			s.end(t)
			wantNobodyBut(t)
			return word
		})
	}
	c.report(t, applied, notKnown, noLedger)
}

// TestRefusedPatchWorksOnceThereIsRoom sends again what a full ledger has refused.
func TestRefusedPatchWorksOnceThereIsRoom(t *testing.T) {
	need.Root(t)
	p := newLedgerPlace(t)
	s := p.mcp(t)
	p.wantNextPatch(t, s)
	p.fill(t, 0)
	for range 3 {
		r := s.patch(t, thePatch, "key")
		if r.code() != noLedger || r.fields["retryable"] != true {
			t.Errorf("the answer: %v", r)
		}
		p.wantDisk(t, noLedger)
	}
	p.makeRoom(t)
	if r := s.patch(t, thePatch, "key"); said(r) != applied {
		t.Errorf("once there is room: %v; stderr: %s", r, &s.stderr)
	}
	p.wantDisk(t, applied)
	s.end(t)
}

// TestLedgerFillsUpBehindTheMint fills the ledger once a patch is minted: the disk is
// whole, and its end is known once there is room.
func TestLedgerFillsUpBehindTheMint(t *testing.T) {
	need.Root(t)
	minted := of(undisturbed(t), "codespace", "minted")[0]
	var c tally
	for _, how := range []string{"no restart", "restart with room", "restart without room"} {
		c.run(t, how, func(t *testing.T) string {
			p := newLedgerPlace(t)
			resume := p.resumable(t)
			s, answer := p.blocked(t, minted)
			p.fill(t, 0)
			resume()
			if r := s.await(t, answer); r.code() != noLedger || said(r) != notKnown || r.text("operation_id") == "" {
				t.Errorf("the answer: %v", r)
			}
			p.wantDisk(t, applied)
			if r := s.operation(t, "key"); said(r) != notKnown && said(r) != noLedger {
				t.Errorf("operation_status while the ledger is full: %v", r)
			}
			if how != "no restart" {
				s.end(t)
			}
			if how == "restart without room" {
				s = p.mcp(t)
			}
			p.makeRoom(t)
			if how == "restart with room" {
				s = p.mcp(t)
			}
			word := p.wantSettled(t, s, "key")
			s.end(t)
			wantNobodyBut(t)
			return word
		})
	}
	c.report(t, applied)
	if c.words[applied] != c.cases {
		t.Errorf("a patch that is on the disk ended as %v", c.words)
	}
}

// ledgerFile is the ledger of the place's workspace.
func (p patchPlace) ledgerFile(t testing.TB) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(p.state, "codespace", "*", "ledger.db"))
	if len(found) != 1 {
		t.Fatalf("control: the ledgers %v", found)
	}
	return found[0]
}

// damages are what may become of a ledger.
var damages = map[string]func([]byte) []byte{
	"no database":       func(b []byte) []byte { return bytes.Repeat([]byte("garbage "), len(b)/8) },
	"half a header":     func(b []byte) []byte { return b[:50] },
	"a header alone":    func(b []byte) []byte { return b[:100] },
	"torn":              func(b []byte) []byte { return b[:len(b)/2] },
	"garbage in tables": func(b []byte) []byte { copy(b[4096:], bytes.Repeat([]byte{0xa5}, 2*4096)); return b },
	"a later version":   func(b []byte) []byte { b[60+3] = 99; return b },
	"another program's": func(b []byte) []byte { copy(b[68:], "ELSE"); return b },
}

// TestLedgerIsDamaged: patches are refused, the ledger stays as it is for whoever
// repairs it, everything else works, and patches do once the ledger is put back.
func TestLedgerIsDamaged(t *testing.T) {
	var c tally
	for name, damage := range damages {
		c.run(t, name, func(t *testing.T) string {
			p := newPatchPlace(t)
			s := p.mcp(t)
			p.wantNextPatch(t, s)
			s.end(t)
			ledger := p.ledgerFile(t)
			whole, err := os.ReadFile(ledger)
			if err != nil {
				t.Fatal(err)
			}
			damaged := damage(bytes.Clone(whole))
			p.put(t, ledger, damaged)
			s = p.mcp(t)
			word := said(s.patch(t, thePatch, "key"))
			if word != noLedger {
				t.Errorf("a patch with this ledger is %s", word)
			}
			p.wantDisk(t, noLedger)
			if r := s.call(t, "read", map[string]any{"workspace_id": s.workspace, "path": "tool.sh"}); r.text("content") != "#!/bin/sh\necho one\n" {
				t.Errorf("read: %v", r)
			}
			if now, err := os.ReadFile(ledger); err != nil || !bytes.Equal(now, damaged) {
				t.Errorf("the damaged ledger was changed: %d bytes, were %d (%v)", len(now), len(damaged), err)
			}
			p.put(t, ledger, whole)
			p.wantNextPatch(t, s)
			s.end(t)
			wantNobodyBut(t)
			return word
		})
	}
	c.report(t, noLedger)
}

func (p patchPlace) put(t testing.TB, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
