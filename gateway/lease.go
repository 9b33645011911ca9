package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"codespace/policy"
	"codespace/runner"
)

// A lease is an abstract Unix socket whose name holds the device and inode of the
// workspace's root. The kernel gives a name once on a host's network namespace
// and frees it with its last holder, however that ends: there is no stale lease
// and no file to sweep. A sandbox has a network namespace of its own and can
// neither take nor see one. Who finds the name taken connects, is told the
// holder, and can wait for the end of the connection.

// Holder says who has a lease and since when.
type Holder struct {
	Kind      string    `json:"kind"` // "exec", "patch" or "recovery" of a patch
	ProcessID string    `json:"process_id,omitempty"`
	PID       int       `json:"pid"` // of the gateway that holds it
	UID       int       `json:"uid"`
	Since     time.Time `json:"since"`
}

const (
	askTimeout = time.Second            // for a holder to say who it is
	retryAfter = 100 * time.Millisecond // of a waiter that was turned away
	maxWaiters = 256
	maxTries   = 16 // to take a lease whose holder ended while it was asked
)

// Lease is held until Release. A nil Lease is the lease of what needs none.
type Lease struct {
	listener *net.UnixListener
	name     *os.File // a duplicate that travels to the runner: it holds the name too

	mu      sync.Mutex // guards what follows
	waiters map[net.Conn]bool
	over    bool
}

// lease takes the workspace's mutation lease for what may write.
func (g *Gateway) lease(grant policy.Grant, h Holder) (*Lease, error) {
	if grant.Access != policy.AccessWrite {
		return nil, nil
	}
	name, err := leaseName(grant.Workspace.Root)
	if err != nil {
		return nil, err
	}
	h.PID, h.UID, h.Since = os.Getpid(), os.Getuid(), time.Now().UTC()
	for tries := 1; ; tries++ {
		l, err := take(name, h)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
		holder, over := ask(name)
		if !over || tries == maxTries {
			return nil, busy(grant.Workspace.ID, holder)
		}
	}
}

// AwaitLease waits until a workspace's lease is free, or ctx ends. It does not
// take the lease: somebody else may be faster. It takes at least a tenth of a second
// unless the lease is seen to end: a holder that turns waiters away is not spun on.
func (g *Gateway) AwaitLease(ctx context.Context, workspaceID string) error {
	w, err := g.workspace(Principal{}, workspaceID)
	if err != nil {
		return err
	}
	name, err := leaseName(w.Root)
	if err != nil {
		return err
	}
	var d net.Dialer
	began := time.Now()
	c, err := d.DialContext(ctx, "unix", name)
	if err == nil {
		defer c.Close()
		stop := context.AfterFunc(ctx, func() { c.Close() })
		defer stop()
		for b := make([]byte, 512); err == nil; {
			_, err = c.Read(b) // until the holder ends
		}
	}
	if errors.Is(err, syscall.ECONNREFUSED) || time.Since(began) > retryAfter {
		return ctx.Err() // nobody holds it any more
	}
	select {
	case <-time.After(retryAfter):
	case <-ctx.Done():
	}
	return ctx.Err()
}

func leaseName(root string) (string, error) {
	device, inode, err := runner.RootOf(root)
	return fmt.Sprintf("@codespace-lease-%d-%d", device, inode), err
}

func take(name string, h Holder) (*Lease, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	dup, err := l.File()
	if err != nil {
		l.Close()
		return nil, err
	}
	said, err := json.Marshal(h)
	if err != nil {
		panic(err) // plain values always marshal
	}
	lease := &Lease{listener: l, name: dup, waiters: map[net.Conn]bool{}}
	go lease.answer(said)
	return lease, nil
}

// answer tells everyone who asks and keeps them connected until the end.
func (l *Lease) answer(said []byte) {
	for {
		c, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors: somebody gives one back
			<-time.After(retryAfter)
			continue
		}
		go l.attend(c, said)
	}
}

// attend tells one asker and keeps it connected until it goes or the lease ends.
func (l *Lease) attend(c net.Conn, said []byte) {
	defer c.Close()
	c.SetWriteDeadline(time.Now().Add(askTimeout))
	c.Write(said)
	l.mu.Lock()
	if l.over || len(l.waiters) == maxWaiters {
		l.mu.Unlock()
		return
	}
	l.waiters[c] = true
	l.mu.Unlock()
	c.Read(make([]byte, 1)) // an asker says nothing: this ends with the connection
	l.mu.Lock()
	delete(l.waiters, c)
	l.mu.Unlock()
}

// Release frees the lease and wakes who waits for it. It may be called again.
func (l *Lease) Release() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	l.listener.Close()
	l.name.Close()
	for c := range l.waiters {
		c.Close()
	}
}

// with appends the lease's descriptor to what travels with a command.
func (l *Lease) with(files []*os.File) []*os.File {
	if l == nil {
		return files
	}
	return append(append([]*os.File(nil), files...), l.name)
}

// ask learns who holds a lease, or that it is over. A holder that died and whose runner
// is still ending its commands does not answer. One that has let go may be held for a
// moment still by a program that its runner is starting: until it is executed that has a
// copy of every descriptor.
func ask(name string) (h *Holder, over bool) {
	c, err := net.DialTimeout("unix", name, askTimeout)
	if err != nil {
		return nil, errors.Is(err, syscall.ECONNREFUSED)
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(askTimeout))
	h = new(Holder)
	err = json.NewDecoder(io.LimitReader(c, 4096)).Decode(h)
	if err == nil && slices.Contains(holders, h.Kind) {
		return h, false
	}
	// Else some other program may have the name, or says what a holder would not.
	return nil, errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// holders are the kinds of a Holder.
var holders = []string{"exec", "patch", "recovery"}

func busy(workspace string, h *Holder) error {
	f := &runner.Fault{Code: runner.WorkspaceBusy, Retryable: true, Message: "workspace " + workspace + " is being changed by somebody else",
		Next: "wait for it to end, then try again", Details: map[string]any{"holder": nil}}
	if h != nil {
		who := "a " + h.Kind
		if h.Kind == "exec" {
			who = "exec " + h.ProcessID
			f.Next = "wait for it to exit, or terminate it if it is yours, then try again"
		}
		f.Message = fmt.Sprintf("workspace %s is being changed by %s of pid %d since %s", workspace, who, h.PID, h.Since.Format(time.RFC3339))
		f.Details = map[string]any{"holder": h, "since": h.Since}
	}
	return f
}
