package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync/atomic"
)

// gate is a server of ours on the loopback of this host. Who gets through to it
// is told so, and counted.
type gate struct {
	net.Listener
	visitors atomic.Int32
	expected int32
}

const welcome = "you have reached the host"

func openGate() (*gate, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gate{Listener: l}
	go g.serve()
	return g, nil
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

func (g *gate) port() int { return g.Addr().(*net.TCPAddr).Port }

// control runs on the host what is to fail in a sandbox.
func (g *gate) control(argv []string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
		g.expected++
		said := strings.TrimSpace(string(out))
		if err == nil && said != welcome {
			err = fmt.Errorf("it was to say %q", welcome)
		}
		return said, err
	}
}

func (g *gate) untouched(status) error {
	if n := g.visitors.Load(); n != g.expected {
		return fmt.Errorf("%d connections came through, %d of them ours", n, g.expected)
	}
	return nil
}
