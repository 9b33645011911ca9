package faults_test

import (
	"strconv"
	"testing"
	"time"
)

// TestOrphansEndWithTheirCommand leaves hundreds of daemons and zombies behind: the
// status is the command's own, and none of them outlives it.
func TestOrphansEndWithTheirCommand(t *testing.T) {
	const daemons = 300
	p := newPlace(t)
	s := p.mcp(t)
	m := mark()
	script := `i=0
while [ $i -lt ` + strconv.Itoa(daemons) + ` ]; do (setsid sleep ` + m + ` &); i=$((i+1)); done
i=0
while [ $i -lt 20 ]; do sh -c 'true & exec sleep ` + m + `' & i=$((i+1)); done
while [ "$(pgrep -c -x sleep)" -lt ` + strconv.Itoa(daemons+20) + ` ]; do sleep 0.1; done
echo started
while [ ! -e go ]; do sleep 0.05; done
exit 7`
	id := s.started(t, "sh", "-c", script)
	wantMarked(t, m, daemons+20)
	touch(t, p.file("go"))
	r := s.exited(t, id, 10*time.Second)
	if left := marked(m); len(left) > 0 {
		t.Errorf("%d of %d orphans outlive their command", len(left), daemons+20)
	}
	if r.text("termination") != "exited" || r.fields["exit_code"] != 7.0 {
		t.Errorf("status of a command that exited with 7: %v", r)
	}
	t.Logf("%d of %d orphans ended", daemons+20-len(marked(m)), daemons+20)
}

// TestNothingPilesUp runs commands in a row and looks for unreaped children and for
// descriptors that stay open.
func TestNothingPilesUp(t *testing.T) {
	const commands = 50
	s := newPlace(t).mcp(t)
	inARow := func(n int) {
		for range n {
			id := s.exec(t, "sh", "-c", "(true &) ; (sleep 0.001 &) ; exit 0")
			s.exited(t, id, 5*time.Second)
		}
	}
	inARow(commands / 2) // until as many cells are held ready as there ever are
	a := anatomyOf(s.pid())
	before := descriptors(a)
	inARow(commands)
	zombies := func() (found []process) {
		for _, q := range below(s.pid()) {
			if q.zombie() {
				found = append(found, q)
			}
		}
		return found
	}
	if !within(promised, func() bool { return len(zombies()) == 0 }) {
		t.Errorf("zombies after %d commands: %v", commands, zombies())
	}
	if now := anatomyOf(s.pid()); now != a {
		t.Errorf("after %d commands: %v, before: %v", commands, now, a)
	}
	if !within(promised, func() bool { return few(descriptors(a), before) }) {
		t.Errorf("open descriptors after %d commands: %v, before: %v", commands, descriptors(a), before)
	}
}

// few tells whether nobody has notably more open: a cell costs some, and how many
// are ready changes.
func few(now, before anatomy) bool {
	for role := range now {
		if now[role] > before[role]+20 {
			return false
		}
	}
	return true
}

// descriptors counts what each role has open.
func descriptors(a anatomy) (n anatomy) {
	for role, pid := range a {
		n[role] = len(openFiles(pid))
	}
	return n
}
