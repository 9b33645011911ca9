package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	magic     = "codespace-runner"
	version   = 1
	helloTime = 30 * time.Second // for the peer to come and to greet
)

// hello is the first frame of either side. Its form is the same in every
// version, and it is read leniently, so that any two versions can part politely.
type hello struct {
	Kind    kind   `json:"kind"` // hello or refused
	Magic   string `json:"magic"`
	Version int    `json:"version"`
	Digest  string `json:"digest,omitempty"` // gateway's: of the registry it has loaded
	PID     int    `json:"pid,omitempty"`    // runner's
	Reason  string `json:"reason,omitempty"` // of a refusal
}

func (c *conn) sendHello(h hello) error {
	h.Magic, h.Version = magic, version
	header, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = c.send(frame{header: header})
	return err
}

func (c *conn) receiveHello() (hello, error) {
	f, err := c.receive(maxHello)
	if err != nil {
		return hello{}, err
	}
	closeAll(f.files)
	var h hello
	switch err := json.Unmarshal(f.header, &h); {
	case err != nil || len(f.files) > 0 || f.dropped || len(f.body) > 0:
		return hello{}, errors.New("not a greeting")
	case h.Magic != magic:
		return hello{}, fmt.Errorf("magic %q, not %q", h.Magic, magic)
	case h.Kind == kindRefused:
		return hello{}, fmt.Errorf("refused: %s", h.Reason)
	case h.Version != version:
		return hello{}, fmt.Errorf("protocol version %d, not %d", h.Version, version)
	case h.Kind != kindHello:
		return hello{}, fmt.Errorf("%q instead of a greeting", h.Kind)
	}
	return h, nil
}

// greet is the gateway's half of the handshake; it returns the runner's pid.
func (c *conn) greet(digest string) (pid int, err error) {
	unsent := c.sendHello(hello{Kind: kindHello, Digest: digest})
	h, err := c.receiveHello() // a refusal may be why nothing could be sent
	if err == nil {
		err = unsent
	}
	return h.PID, err
}

// welcome is the runner's half. Whoever is not welcome is told why and cut.
func (c *conn) welcome(digest string) error {
	h, err := c.receiveHello()
	if err == nil && h.Digest != digest {
		err = fmt.Errorf("registry digest %q, not %q", h.Digest, digest)
	}
	if err != nil {
		c.refuse(err)
		return fmt.Errorf("cannot welcome the gateway: %w", err)
	}
	if err := c.sendHello(hello{Kind: kindHello, PID: os.Getpid()}); err != nil {
		c.close()
		return fmt.Errorf("cannot greet the gateway: %w", err)
	}
	return nil
}

// refuse never blocks: a fresh socket has room for the reason.
func (c *conn) refuse(reason error) {
	c.sendHello(hello{Kind: kindRefused, Reason: reason.Error()})
	c.close()
}

// checkPeer compares the credentials the kernel noted at connect(2) (unix(7),
// SO_PEERCRED) with our own uid or root, and with pid unless that is 0.
func checkPeer(socket *net.UnixConn, pid int) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	failed := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return fmt.Errorf("cannot tell who is connecting: %w", err)
	case peer.Uid != 0 && int(peer.Uid) != os.Geteuid():
		return fmt.Errorf("uid %d may not connect", peer.Uid)
	case pid != 0 && int(peer.Pid) != pid:
		return fmt.Errorf("pid %d may not connect", peer.Pid)
	}
	return nil
}
