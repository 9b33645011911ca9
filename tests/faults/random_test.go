package faults_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// TestKilledAtRandomMoments kills one process of a codespace at any moment of a
// command's life, and goes on in the same workspace.
func TestKilledAtRandomMoments(t *testing.T) {
	n, seed := share(30), uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	p := newPlace(t)
	survived, hit := 0, [roles]int{}
	for i := range n {
		role, delay := chance.IntN(roles), time.Duration(chance.IntN(600))*time.Millisecond
		frozen := chance.IntN(4) == 0
		t.Run(fmt.Sprintf("%d %s after %v", i, caseName(role, frozen), delay), func(t *testing.T) {
			role = p.killedAfter(t, delay, role, frozen)
		})
		if t.Failed() {
			break
		}
		hit[role]++
		survived++
	}
	if litter, err := os.ReadDir(p.workspace); err != nil || len(litter) > 0 {
		t.Errorf("in the workspace: %v, %v", litter, err)
	}
	t.Logf("%d of %d survived; killed by role %v: %v", survived, n, roleNames, hit)
}

// killedAfter kills, some time after a command was asked for, the given role or
// the innermost one that is there by then, which it returns.
func (p place) killedAfter(t *testing.T, delay time.Duration, role int, frozen bool) int {
	s := p.mcp(t)
	m := mark()
	answer := s.begin("sh", "-c", "sleep "+m+" & (sleep "+m+" &) sleep 0.3")
	await(delay)
	f, a := footprintOf(s.pid()), anatomyOf(s.pid())
	for a[role] == 0 {
		role--
	}
	kill(t, a[role], frozen)
	r := s.await(t, answer)
	if role == gateway && !r.gone && r.failed || role != gateway && r.gone {
		t.Errorf("answer to a command whose %s was killed: %v", roleNames[role], r)
	}
	switch r.code() {
	case "", "SANDBOX_UNAVAILABLE", "PROCESS_SPAWN_FAILED", "RUNNER_UNAVAILABLE":
	default:
		t.Errorf("answer to a command whose %s was killed: %v", roleNames[role], r)
	}
	wantNoneMarked(t, m)
	if role == gateway {
		wantNobodyBut(t)
	}
	p.wantNextWorks(t, s, role, f)
	return role
}
