package patch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"codespace/openat2fs"
	"codespace/runner/patching"
)

// Helper serves one patch of one workspace.
type Helper struct {
	root      *openat2fs.Root
	protected []string
	limits    patching.Limits
	uid       int // who this process is: its filter does not let it ask

	plan   *plan
	dirs   map[string]*openat2fs.Dir // by path; they stay open to the end
	buffer []byte                    // of a file that is looked at

	applying bool  // whatever was done was done by this helper
	held     []int // descriptors that are open until the patch has ended
}

// Serve does what the runner at the other end of c asks for, until it is gone.
func Serve(c *patching.Conn) error {
	h, err := setUp(c)
	if err != nil {
		return err
	}
	for {
		var r patching.Request
		body, fds, err := c.Receive(&r)
		h.held = append(h.held, fds...)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		a, err := h.answer(r, body)
		if err != nil {
			a = patching.Answer{Fault: faultOf(err)}
		}
		if a.Outcome != nil {
			h.release()
		}
		if err := c.Send(a, nil); err != nil {
			return err
		}
	}
}

// release lets others see that this helper is done with the workspace.
func (h *Helper) release() {
	for _, fd := range h.held {
		unix.Close(fd)
	}
	h.held = nil
}

// setUp takes the first request and locks this process down.
func setUp(c *patching.Conn) (*Helper, error) {
	var r patching.Request
	_, fds, err := c.Receive(&r)
	if err != nil {
		return nil, err
	}
	if r.Setup == nil || len(fds) == 0 {
		return nil, errors.New("cannot serve: the first request must be a setup with the root's descriptor")
	}
	h := &Helper{protected: r.Setup.Protected, limits: r.Setup.Limits, dirs: map[string]*openat2fs.Dir{}}
	if h.uid = r.Setup.UID; h.uid < 0 {
		h.uid = os.Geteuid()
	}
	h.root, err = openat2fs.Adopt(fds[0], openat2fs.Limits{HashBytes: h.limits.FileBytes})
	if err == nil {
		err = confine(r.Setup, fds[0])
	}
	a := patching.Answer{Fault: faultOf(err)}
	return h, errors.Join(err, c.Send(a, nil))
}

func (h *Helper) answer(r patching.Request, body []byte) (patching.Answer, error) {
	ctx := context.Background() // who gives up ends this process
	switch {
	case r.Plan != nil && h.plan == nil:
		p, err := h.planned(ctx, body, r.Plan.Expected)
		if err != nil {
			return patching.Answer{}, err
		}
		h.plan = p
		return patching.Answer{Planned: &p.Planned}, nil
	case r.Apply && h.plan != nil:
		p := h.plan
		h.plan = &plan{}
		return outcome(h.apply(ctx, p))
	case r.Settle != nil && h.plan == nil:
		h.plan = &plan{}
		return outcome(h.settle(ctx, *r.Settle, errInterrupted))
	}
	return patching.Answer{}, fmt.Errorf("cannot serve this request now")
}

func outcome(o patching.Outcome, err error) (patching.Answer, error) {
	return patching.Answer{Outcome: &o}, err
}
