package wire

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"codespace/runner"
)

const (
	inheritedFD = 3
	lifelineFD  = 4
	lastWords   = 4 << 10         // of stderr, kept for the operator
	lingerTime  = 2 * time.Second // for a failed runner to exit, and for its stderr to end
)

// environment is all of it: a role or a setting is an argument, never a variable.
var environment = []string{
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"LANG=C.UTF-8",
}

// Program is a runner to be started.
type Program struct {
	Path    string             // absolute
	Args    []string           // after the program's name
	Dir     string             // ours, mode 0700: the socket lies here until the runner has answered
	Digest  string             // of the registry
	Stdin   []byte             // its settings: an argument could be read by other users
	Stderr  io.Writer          // the operator's log, or nil; its errors are ignored
	OnEnded func(runner.Ended) // as in Dial
}

// Child is a runner that was started. Its subtree ends with its connection; Kill
// is for a runner that is stopped.
type Child struct {
	Client *Client

	cmd    *exec.Cmd
	words  *runner.Output
	exited chan struct{}
	err    error // of cmd.Wait; set before exited is closed
}

// Spawn starts a runner in a session of its own, so that a terminal's signals do
// not reach it, and dials it. The runner inherits the listening socket as
// descriptor 3: whoever dials needs no retry, and a runner that dies leaves
// nothing to wait for. It must ignore SIGPIPE: its stderr goes through us.
//
// An error wraps a RunnerUnavailable *Fault that is fit for clients; its own
// text, with exit status and last words, is for the operator.
func Spawn(ctx context.Context, p Program) (*Child, error) {
	l, err := listen(p.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot start runner: %w (%w)", err, notStarted())
	}
	path := l.Addr().String()
	defer os.Remove(path)
	c, err := start(p, l)
	if err != nil {
		return nil, fmt.Errorf("cannot start runner: %w (%w)", err, notStarted())
	}
	c.Client, err = Dial(ctx, path, p.Digest, p.OnEnded)
	if err == nil && c.Client.pid != c.PID() {
		c.Client.Close()
		err = fmt.Errorf("pid %d answered instead of %d (%w)", c.Client.pid, c.PID(), notStarted())
	}
	if err != nil {
		return nil, c.bury(err)
	}
	return c, nil
}

// notStarted is what a client is told; trying again helps nothing.
func notStarted() *runner.Fault {
	return &runner.Fault{Code: runner.RunnerUnavailable, Message: "the runner did not start", Next: "have the operator read codespace's log"}
}

// listen makes the socket the runner will serve.
func listen(dir string) (*net.UnixListener, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || int(owner) != os.Geteuid() {
		return nil, fmt.Errorf("cannot listen in %s: not a directory of ours with mode 0700", dir)
	}
	path := filepath.Join(dir, "runner-"+rand.Text()[:8])
	if len(path) >= len(unix.RawSockaddrUnix{}.Path) {
		return nil, fmt.Errorf("cannot listen on %s: the path is too long for a socket", path)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the runner's copy still listens
	return l, nil
}

// start runs the program with l, of which it keeps no copy: the last one is the
// runner's.
func start(p Program, l *net.UnixListener) (*Child, error) {
	defer l.Close()
	if !filepath.IsAbs(p.Path) {
		return nil, fmt.Errorf("cannot run %q: not an absolute path", p.Path)
	}
	socket, err := l.File()
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	c := &Child{
		cmd:    exec.Command(p.Path, p.Args...),
		words:  runner.NewOutput(lastWords),
		exited: make(chan struct{}),
	}
	c.cmd.Dir = "/"
	c.cmd.Env = environment
	c.cmd.Stdin = bytes.NewReader(p.Stdin)
	c.cmd.Stderr = operatorLog{words: c.words, log: p.Stderr}
	c.cmd.ExtraFiles = []*os.File{socket, theirs} // become inheritedFD and lifelineFD
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.cmd.WaitDelay = lingerTime
	if err := c.cmd.Start(); err != nil {
		ours.Close()
		return nil, err
	}
	go func() {
		c.err = c.cmd.Wait()
		ours.Close()
		close(c.exited)
	}()
	return c, nil
}

// bury ends a runner that could not be dialled and tells what became of it.
func (c *Child) bury(cause error) error {
	select {
	case <-c.exited:
	case <-time.After(lingerTime):
		c.Kill()
		<-c.exited
	}
	said, _ := c.words.Read(context.Background(), 0, lastWords, 0)
	return fmt.Errorf("cannot start runner: %s, last words %q: %w", c.cmd.ProcessState, said.Chunk, cause)
}

// Wait returns once the runner has exited, with nil for status 0.
func (c *Child) Wait() error {
	<-c.exited
	return c.err
}

// Kill sends SIGKILL to the runner, if it has not exited.
func (c *Child) Kill() error {
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot kill runner: %w", err)
	}
	return nil
}

// PID is the runner's process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// operatorLog keeps the last words, and survives a log that does not: a runner
// must not lose its stderr because we have lost ours.
type operatorLog struct {
	words *runner.Output
	log   io.Writer // nil: none
}

func (l operatorLog) Write(p []byte) (int, error) {
	l.words.Write(p)
	if l.log != nil {
		l.log.Write(p)
	}
	return len(p), nil
}

// Inherited returns the listening socket and the lifeline that Spawn has passed to
// this process. The lifeline hangs up when the gateway is gone; it is for those
// who must notice even while this process is stopped.
func Inherited() (*net.UnixListener, *os.File, error) {
	unix.CloseOnExec(lifelineFD)
	unix.CloseOnExec(inheritedFD)
	f := os.NewFile(inheritedFD, "runner socket")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot serve descriptor %d: %w", inheritedFD, err)
	}
	socket, ok := l.(*net.UnixListener)
	if !ok {
		l.Close()
		return nil, nil, fmt.Errorf("cannot serve descriptor %d: not a Unix socket", inheritedFD)
	}
	return socket, os.NewFile(lifelineFD, "lifeline"), nil
}
