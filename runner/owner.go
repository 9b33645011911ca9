package runner

import (
	"fmt"
	"runtime"

	"codespace/sandbox"

	"golang.org/x/sys/unix"
)

// owner is whose file identity a workspace's files are read with.
type owner struct{ uid, gid uint32 }

// asOwner does work as the owner: with that uid and gid for files, no other groups and
// no capabilities, so that it reaches what a command of the workspace reaches and root
// could read more. A runner that is not the host's root has one identity only.
//
// The identity is a thread's (credentials(7)); the thread is given up with it.
func asOwner[T any](o owner, work func() (T, error)) (result T, err error) {
	if !(sandbox.Host{}).Root() {
		return work()
	}
	var panicked any
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // and never unlocked
		defer func() {
			panicked = recover()
			close(done)
		}()
		if err = o.become(); err == nil {
			result, err = work()
		}
	}()
	<-done
	if panicked != nil {
		panic(panicked) // for who recovers it there
	}
	return result, err
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
