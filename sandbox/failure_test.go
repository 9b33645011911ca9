package sandbox_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"codespace/sandbox"
	"codespace/sandbox/message"
)

func TestFailKeepsTheFirstFailure(t *testing.T) {
	whole := &sandbox.Failure{Step: "proc", Index: 4, Errno: int(syscall.EPERM), Reason: "/proc", Launch: true}
	cases := []struct {
		err  error
		want sandbox.Failure
	}{
		{whole, *whole},
		{fmt.Errorf("a: %w", fmt.Errorf("b: %w", whole)), *whole},
		{errors.Join(errors.New("first"), whole), *whole},
		{syscall.EMFILE, sandbox.Failure{Step: "stage", Index: 3, Errno: int(syscall.EMFILE), Reason: syscall.EMFILE.Error()}},
		{&fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}, sandbox.Failure{Step: "stage", Index: 3, Errno: int(syscall.EACCES), Reason: "open /x: permission denied"}},
		{errors.New("plain"), sandbox.Failure{Step: "stage", Index: 3, Reason: "plain"}},
	}
	for _, c := range cases {
		if got := sandbox.Fail("stage", 3, c.err); *got != c.want {
			t.Errorf("%v became %+v", c.err, got)
		}
	}
}

func TestFailureOfTheCSide(t *testing.T) {
	m := message.Message{Kind: message.KindFailed}
	m.String(message.TagStep, "user namespace").Uint32(message.TagIndex, 10).Uint32(message.TagErrno, uint32(syscall.ENOSPC)).String(message.TagReason, "1/uid_map")
	got := sandbox.FailureOf(m)
	if *got != (sandbox.Failure{Step: "user namespace", Index: 10, Errno: int(syscall.ENOSPC), Reason: "1/uid_map"}) {
		t.Errorf("%+v", got)
	}
	if text := got.Error(); text != `step "user namespace" (10): no space left on device: 1/uid_map` {
		t.Errorf("%s", text)
	}
	if got := sandbox.FailureOf(message.Message{}); *got != (sandbox.Failure{}) {
		t.Errorf("%+v from nothing", got)
	}
}

// userNamespaceKnobs are what can stand in the way of a user namespace; which of
// them does is a matter of this host.
var userNamespaceKnobs = []string{"user.max_user_namespaces", "kernel.unprivileged_userns_clone", "kernel.apparmor_restrict_unprivileged_userns",
	"user namespaces (seccomp filter, security module or kernel build)"}

// groupKnobs likewise for a cgroup: a plain user often has none.
var groupKnobs = []string{"the cgroup file system", "no cgroup of this user's own"}

func TestRemedy(t *testing.T) {
	cases := []struct {
		failure sandbox.Failure
		knobs   []string // one of them
	}{
		{sandbox.Failure{Step: "user namespace", Errno: int(syscall.ENOSPC)}, userNamespaceKnobs[:1]},
		{sandbox.Failure{Step: "container user namespace", Errno: int(syscall.ENOSPC)}, userNamespaceKnobs[:1]},
		{sandbox.Failure{Step: "user namespace map", Errno: int(syscall.EPERM)}, userNamespaceKnobs},
		{sandbox.Failure{Step: "user namespace", Errno: int(syscall.EPERM)}, userNamespaceKnobs},
		{sandbox.Failure{Step: "identity"}, []string{"a user namespace whose root is the host's root"}},
		{sandbox.Failure{Step: "id-mapped mount", Errno: int(syscall.EINVAL)}, []string{"id-mapped mounts"}},
		{sandbox.Failure{Step: "proc", Errno: int(syscall.EPERM)}, []string{"a masked /proc"}},
		{sandbox.Failure{Step: "container", Errno: int(syscall.EPERM), Reason: `error mounting "proc" to rootfs at "/proc": operation not permitted`}, []string{"a masked /proc"}},
		{sandbox.Failure{Step: "cgroup limits", Errno: int(syscall.EACCES), Reason: "open /sys/fs/cgroup/memory/x: permission denied"}, groupKnobs},
		{sandbox.Failure{Step: "cgroup", Reason: "enforcement is strict and no cgroup for memory can be made"}, groupKnobs},
		{sandbox.Failure{Step: "mount namespace", Errno: int(syscall.EPERM)}, []string{"a seccomp filter or security module on this process"}},
		{sandbox.Failure{Step: "cell namespaces", Errno: int(syscall.ENOSYS)}, []string{"a seccomp filter or security module on this process"}},
		{sandbox.Failure{Step: "stage", Errno: int(syscall.EMFILE)}, []string{"RLIMIT_NOFILE"}},
		{sandbox.Failure{Step: "stage", Errno: int(syscall.ENFILE)}, []string{"RLIMIT_NOFILE"}},
		{sandbox.Failure{Step: "cell namespaces", Errno: int(syscall.EAGAIN)}, []string{"memory or process limits of this host"}},
		{sandbox.Failure{Step: "cell namespaces", Errno: int(syscall.ENOMEM)}, []string{"memory or process limits of this host"}},
		{sandbox.Failure{Step: "workspace", Reason: "workspace root was replaced while its sandbox was being built"}, []string{""}},
		{sandbox.Failure{}, []string{""}},
	}
	for _, c := range cases {
		r := c.failure.Remedy()
		known := false
		for _, knob := range c.knobs {
			known = known || r.Knob == knob
		}
		if !known {
			t.Errorf("%+v: %+v", c.failure, r)
		}
		// Whoever names what is in the way also says how to see it and what to do.
		if (r.Knob == "") != (r.Show == "") || (r.Knob == "") != (r.Fix == "") {
			t.Errorf("%+v: half a remedy: %+v", c.failure, r)
		}
		text := r.String()
		if r.Knob == "" && !strings.Contains(text, "report this step") || !strings.Contains(text, r.Knob) || !strings.Contains(text, r.Show) || !strings.Contains(text, r.Fix) {
			t.Errorf("%+v: %s", c.failure, text)
		}
	}
}

// Only root of the initial user namespace can give a sandbox ids of its own; who
// cannot is named by the uid that started it.
func TestStarter(t *testing.T) {
	who := (sandbox.Host{}).Starter()
	if who.HostUID != -1 || who.HostGID != -1 || who.Mapped() {
		t.Errorf("%+v", who)
	}
	if (sandbox.Host{}).Root() && who.StartingUID != 0 {
		t.Errorf("the host's root started %+v", who)
	}
	for _, c := range []struct {
		who  sandbox.Identity
		want bool
	}{
		{sandbox.Identity{HostUID: 200001, HostGID: 200001, DiskUID: 0}, true},
		{sandbox.Identity{HostUID: 200001, HostGID: 200001, DiskUID: 1000}, true},
		{sandbox.Identity{HostUID: 1000, HostGID: 1000, DiskUID: 1000}, false},
		{sandbox.Identity{HostUID: -1, HostGID: -1, DiskUID: 1000}, false},
	} {
		if c.who.Mapped() != c.want {
			t.Errorf("%+v", c.who)
		}
	}
}
