package main

import (
	"fmt"
	"os"
	"sync"

	"codespace/helper/cell"
	"codespace/helper/container"
	"codespace/helper/seccomp"
	"codespace/sandbox"
)

// builder serves the requests of one runner.
type builder struct {
	stage    string
	lifeline *os.File

	releasing sync.WaitGroup // sandboxes on their way out; added to under mu

	mu    sync.Mutex // guards what follows
	open  *container.Stage
	boxes map[string]*box
}

// box is one sandbox that stands.
type box struct {
	plan      sandbox.Plan
	container *container.Container
	factory   *cell.Factory

	mu   sync.Mutex // guards next
	next int
}

func (b *builder) prepare(p sandbox.Plan) (none sandbox.Receipt, _ *os.File, err error) {
	if f := cell.NamespaceFailure(); f != nil {
		return none, nil, f
	}
	if p.Identity.HostUID < 0 && p.Identity.StartingUID <= 0 {
		return none, nil, &sandbox.Failure{Step: "identity", Reason: "the sandbox would have host uid 0"}
	}
	programs, err := seccomp.Compile(p.Debug)
	if err != nil {
		return none, nil, sandbox.Fail("seccomp programs", 0, err)
	}
	stage, err := b.stageOnce()
	if err != nil {
		return none, nil, err
	}
	c, err := stage.Build(p)
	if err != nil {
		return none, nil, err
	}
	f, err := cell.NewFactory(c.Factory, cellConfig(p, programs))
	if err != nil {
		c.Destroy()
		return none, nil, err
	}
	x := &box{plan: p, container: c, factory: f}
	b.mu.Lock()
	b.boxes[p.ID] = x
	b.mu.Unlock()
	receipt, err := x.prove()
	var pidfd *os.File
	if err == nil {
		pidfd, err = c.PIDFD()
	}
	if err != nil {
		b.release(p.ID) // who asked may have given up, and released it too early
		return none, nil, err
	}
	return receipt, pidfd, nil
}

func (b *builder) stageOnce() (*container.Stage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open != nil {
		return b.open, nil
	}
	s, err := container.OpenStage(b.stage, b.lifeline)
	b.open = s
	return s, err
}

func cellConfig(p sandbox.Plan, s seccomp.Programs) cell.Config {
	return cell.Config{
		Workspace: p.Root.Path,
		Root:      p.Root,
		Programs:  [2][]byte{s.Allow, s.Deny},
		ShmBytes:  uint64(p.ShmBytes),
		Processes: uint64(p.Limits.PIDs) + 1, // PID 1 is not the user's
		OpenFiles: uint64(p.Limits.OpenFiles),
	}
}

// prove makes one cell and puts it away: a sandbox that cannot make cells is
// found out when it is built.
func (x *box) prove() (sandbox.Receipt, error) {
	n, m, err := x.make(sandbox.Wish{Writable: x.plan.Writable, Terminal: true})
	if err != nil {
		return sandbox.Receipt{}, err
	}
	n.Kill()
	return m.Receipt, m.Leaf.Remove()
}

func (b *builder) cell(id string, w sandbox.Wish) (sandbox.Made, error) {
	b.mu.Lock()
	x := b.boxes[id]
	b.mu.Unlock()
	if x == nil {
		return sandbox.Made{}, &sandbox.Failure{Step: "cell", Reason: "no sandbox " + id}
	}
	return x.cell(w)
}

func (x *box) cell(w sandbox.Wish) (sandbox.Made, error) {
	if w.Writable && !x.plan.Writable {
		return sandbox.Made{}, &sandbox.Failure{Step: "cell", Reason: "the workspace is read-only"}
	}
	_, m, err := x.make(w)
	return m, err
}

// make makes a cell; one that cannot be finished is gone when it returns.
func (x *box) make(w sandbox.Wish) (*cell.Newborn, sandbox.Made, error) {
	n, err := x.factory.Clone(w)
	if err != nil {
		return nil, sandbox.Made{}, err
	}
	m, err := x.finish(n)
	if err != nil {
		n.Kill()
		m.Leaf.Remove()
		return nil, sandbox.Made{}, err
	}
	return n, m, nil
}

// finish places a cloned cell in its cgroup, lets it lock itself down and reads
// back what the kernel shows of it.
func (x *box) finish(n *cell.Newborn) (m sandbox.Made, err error) {
	if m.PID, err = n.PID(); err != nil {
		return m, err
	}
	x.mu.Lock()
	x.next++
	name := fmt.Sprintf("cell-%d", x.next)
	x.mu.Unlock()
	m.Leaf = sandbox.LeafOf(x.container.Cgroups, name)
	if err := x.place(m.Leaf, m.PID); err != nil {
		return m, err
	}
	if err := n.Finish(); err != nil {
		return m, err
	}
	m.Files = n.Files()
	m.Receipt, err = x.plan.Inspect(m.PID, m.Leaf)
	return m, err
}

func (x *box) place(l sandbox.Leaf, pid int) error {
	if l.Memory == "" && x.plan.Enforce == "strict" {
		return &sandbox.Failure{Step: "cgroup", Reason: "enforcement is strict and no cgroup for memory can be made"}
	}
	if err := l.Limit(x.plan.Limits.Memory, x.plan.Limits.PIDs+1); err != nil {
		return sandbox.Fail("cgroup limits", 0, err)
	}
	if err := l.Add(pid); err != nil {
		return sandbox.Fail("cgroup placement", 0, err)
	}
	return nil
}

func (b *builder) release(id string) error {
	b.mu.Lock()
	x := b.boxes[id]
	delete(b.boxes, id)
	if x != nil {
		b.releasing.Add(1)
		defer b.releasing.Done()
	}
	b.mu.Unlock()
	if x == nil {
		return nil
	}
	x.factory.Close()
	return x.container.Destroy()
}

// close puts every sandbox away and waits for those that are going already: a
// factory that is stopped does not notice our end.
func (b *builder) close() {
	b.mu.Lock()
	ids := make([]string, 0, len(b.boxes))
	for id := range b.boxes {
		ids = append(ids, id)
	}
	b.mu.Unlock()
	for _, id := range ids {
		if err := b.release(id); err != nil {
			fmt.Fprintln(os.Stderr, "codespace-helper:", err)
		}
	}
	b.releasing.Wait()
}
