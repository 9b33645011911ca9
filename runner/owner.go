package runner

import (
	"fmt"
	"runtime"
	"time"

	"codespace/sandbox"

	"golang.org/x/sys/unix"
)

// owner is whose file identity a workspace's files are read with.
type owner struct{ uid, gid uint32 }

// ownerIdle is how long a thread waits for more work.
const ownerIdle = 5 * time.Second

// threads do work with the file identity of an owner, which is a thread's
// (credentials(7)). A thread that has taken one never gets another: it waits a little
// for more work and ends.
type threads struct {
	owner owner
	work  chan func()
}

func newThreads(o owner) *threads { return &threads{o, make(chan func())} }

// asOwner does work as the owner of t: with that uid and gid for files, no other groups
// and no capabilities, so that it reaches what a command of the workspace reaches and
// root could read more. A runner that is not the host's root has one identity only.
func asOwner[T any](t *threads, work func() (T, error)) (result T, err error) {
	if !(sandbox.Host{}).Root() {
		return work()
	}
	var panicked any
	done := make(chan struct{})
	task := func(refused error) {
		defer func() {
			panicked = recover()
			close(done)
		}()
		if err = refused; err == nil {
			result, err = work()
		}
	}
	select {
	case t.work <- func() { task(nil) }: // to a thread that waits
	default:
		go t.begin(task)
	}
	<-done
	if panicked != nil {
		panic(panicked) // for who recovers it there
	}
	return result, err
}

// begin makes the calling goroutine's thread the owner's, for a first task and those
// that come while it waits.
func (t *threads) begin(task func(refused error)) {
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	err := t.owner.become()
	task(err)
	for err == nil {
		select {
		case next := <-t.work:
			next()
		case <-time.After(ownerIdle):
			return
		}
	}
}

// become changes the calling thread for good.
func (o owner) become() error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 { // of this thread alone
		return fmt.Errorf("cannot give up groups: %w", errno)
	}
	unix.Setfsgid(int(o.gid))
	unix.Setfsuid(int(o.uid))
	gid, _ := unix.SetfsgidRetGid(-1) // neither call tells whether it worked
	uid, _ := unix.SetfsuidRetUid(-1)
	if uint32(gid) != o.gid || uint32(uid) != o.uid {
		return fmt.Errorf("cannot take the file identity %d:%d", o.uid, o.gid)
	}
	none := [2]unix.CapUserData{}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("cannot give up capabilities: %w", err)
	}
	return nil
}
