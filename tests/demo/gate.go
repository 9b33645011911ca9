package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync/atomic"
)

const welcome = "you have reached the host"

// gate is a server of ours on this host's loopback. Whoever gets through to it is
// told so, and counted.
type gate struct {
	net.Listener
	visitors, ours atomic.Int32
}

func openGate() (*gate, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	g := &gate{Listener: l}
	if err == nil {
		go g.serve()
	}
	return g, err
}

func (g *gate) serve() {
	for {
		visitor, err := g.Accept()
		if err != nil {
			return
		}
		g.visitors.Add(1)
		fmt.Fprintln(visitor, welcome)
		visitor.Close()
	}
}

func (g *gate) port() string { return fmt.Sprint(g.Addr().(*net.TCPAddr).Port) }

// knock runs on the host what is to fail in a sandbox.
func (g *gate) knock(argv []string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
		said := strings.TrimSpace(string(out))
		if err == nil && said != welcome {
			err = fmt.Errorf("it was to say %q", welcome)
		}
		g.ours.Add(1)
		return said, err
	}
}

func (g *gate) untouched(status) error {
	if n := g.visitors.Load() - g.ours.Load(); n != 0 {
		return fmt.Errorf("%d connections came through", n)
	}
	return nil
}
