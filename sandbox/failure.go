package sandbox

import (
	"errors"
	"fmt"
	"syscall"

	"codespace/sandbox/message"
)

// Failure is a step that failed while a sandbox, a cell or a command was being
// set up. Nothing ran. It crosses processes as it is.
type Failure struct {
	Step   string `json:"step"`
	Index  int    `json:"index"`
	Errno  int    `json:"errno,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Launch is true when the sandbox stood and the command itself could not be
	// started; false when the sandbox could not be built.
	Launch bool `json:"launch,omitempty"`
}

func (f *Failure) Error() string {
	s := fmt.Sprintf("step %q (%d)", f.Step, f.Index)
	if f.Errno != 0 {
		s += ": " + syscall.Errno(f.Errno).Error()
	}
	if f.Reason != "" {
		s += ": " + f.Reason
	}
	return s
}

// FailureOf is the failure that a message of kind Failed tells of.
func FailureOf(m message.Message) *Failure {
	return &Failure{Step: m.Text(message.TagStep), Index: int(m.Number(message.TagIndex)),
		Errno: int(m.Number(message.TagErrno)), Reason: m.Text(message.TagReason)}
}

// Fail makes a Failure of an error of a step; the errno is kept when there is
// one in err.
func Fail(step string, index int, err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	f = &Failure{Step: step, Index: index, Reason: err.Error()}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		f.Errno = int(errno)
	}
	return f
}

const stepMountBelow = "mount below the workspace"

// MountBelow is the failure of a plan whose workspace has a mount below it, at a
// relative path: it would show what the operator did not register.
func (p Plan) MountBelow(path string) *Failure { return &Failure{Step: stepMountBelow, Reason: path} }

// MountBelow is the relative path of such a mount, if that is the failure.
func (f *Failure) MountBelow() (path string, is bool) { return f.Reason, f.Step == stepMountBelow }
