package patch

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"codespace/openat2fs"
	"codespace/runner/patching"
)

// Helper serves one patch of one workspace.
type Helper struct {
	root      *openat2fs.Root
	protected []string
	limits    patching.Limits

	uid         int   // whose files a patch makes,
	groups      []int // and with which groups
	directories int   // that may be open at once

	plan   *plan
	dirs   map[string]*openat2fs.Dir // by path; they stay open to the end
	buffer []byte                    // of a file that is looked at

	applying bool     // whatever was done was done by this helper
	made     []string // directories, by it
	held     []int    // descriptors that are open until the patch has ended
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
	h.root, err = openat2fs.Adopt(fds[0], openat2fs.Limits{HashBytes: h.limits.FileBytes})
	if err == nil {
		err = h.identify(r.Setup)
	}
	if err == nil {
		err = confine(r.Setup, fds[0])
	}
	a := patching.Answer{Fault: faultOf(err)}
	return h, errors.Join(err, c.Send(a, nil))
}

// identify finds out whom confine will make of this process. Afterwards it cannot ask.
func (h *Helper) identify(s *patching.Setup) error {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	h.directories = int(min(files.Max, openFiles)-ownFiles) / 2 // of each there may be one above it
	if s.UID >= 0 {
		h.uid, h.groups = s.UID, []int{s.GID}
		return nil
	}
	groups, err := unix.Getgroups()
	h.uid, h.groups = unix.Geteuid(), append(groups, unix.Getegid())
	return err
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
		return outcome(h.interrupted(ctx, *r.Settle))
	}
	return patching.Answer{}, fmt.Errorf("cannot serve this request now")
}

// interrupted settles what was planned for this root. Another directory is left alone:
// its files are not those of the plan.
func (h *Helper) interrupted(ctx context.Context, p patching.Planned) (patching.Outcome, error) {
	st, err := h.root.Stat(ctx, openat2fs.Path{})
	if err != nil {
		return patching.Outcome{}, err
	}
	if st.Inode != p.Root {
		return patching.Outcome{Status: patching.Unknown, Facts: []patching.Fact{{Path: ".", Found: "another directory", Because: "the workspace is not the one that the patch was for"}}}, nil
	}
	return h.settle(ctx, p, errInterrupted)
}

func outcome(o patching.Outcome, err error) (patching.Answer, error) {
	return patching.Answer{Outcome: &o}, err
}
