package main

import (
	"context"
	"fmt"
	"time"

	"codespace/policy"
)

// coldSide is a runner with several sandboxes that stand and in which nothing was
// run yet: no cell is prepared before a workspace's first command with an access.
type coldSide struct {
	*ground
	runner *runnerSide
	left   []place // not used yet
}

func coldAtRunner(g *ground) *subject {
	c := &coldSide{ground: g}
	return &subject{name: "the same, cold: its sandbox stands, no cell is prepared", sample: c.sample, close: c.close, remark: found}
}

func (c *coldSide) sample(ctx context.Context, w *stopwatch) error {
	if len(c.left) == 0 {
		if err := c.renew(ctx); err != nil {
			return err
		}
	}
	at := c.left[0]
	c.left = c.left[1:]
	return c.runner.run(ctx, w, at)
}

// renew begins anew: a runner that has run commands, though not where it will.
func (c *coldSide) renew(ctx context.Context) (err error) {
	c.close()
	if c.runner, err = c.startRunner(ctx); err != nil {
		return err
	}
	for range 3 {
		if err := c.runner.sample(ctx, &stopwatch{}); err != nil {
			return err
		}
	}
	for _, access := range []policy.Access{policy.AccessWrite, policy.AccessRead} {
		for i := range fresh {
			at, err := c.enter(fmt.Sprintf("fresh-%d", i), access)
			if err != nil {
				return err
			}
			c.left = append(c.left, at)
		}
	}
	for _, at := range c.left[:fresh] { // asking what holds in a sandbox builds it
		support, err := c.runner.child.Client.Support(ctx, at.workspace.ID)
		if err != nil || !support.Available {
			return fmt.Errorf("no sandbox: %s: %w", support.Reason, err)
		}
	}
	time.Sleep(gap)
	return nil
}

func (c *coldSide) close() {
	if c.runner != nil {
		c.runner.close()
		c.runner = nil
	}
}
