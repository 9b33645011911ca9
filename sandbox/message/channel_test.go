package message_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"codespace/sandbox/message"

	"golang.org/x/sys/unix"
)

// pair is a channel and the raw descriptor of its peer.
func pair(t *testing.T) (*message.Channel, *os.File) {
	t.Helper()
	a, b, err := message.Pair()
	if err != nil {
		t.Fatal(err)
	}
	ch, err := message.New(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ch.Close(); b.Close() })
	return ch, b
}

// descriptors counts what is open; nothing that was forgotten is closed by the
// garbage collector meanwhile.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func withoutCollector(t *testing.T) {
	old := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(old) })
}

// rights sends n descriptors of null with content, past the Channel's own checks.
func rights(t *testing.T, to *os.File, content []byte, n int) {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	fds := make([]int, n)
	for i := range fds {
		fds[i] = int(null.Fd())
	}
	oob := unix.UnixRights(fds...)
	// By number, because unix.Sendmsg turns an empty message into one of a byte.
	io := unix.Iovec{Base: unsafe.SliceData(content), Len: uint64(len(content))}
	h := unix.Msghdr{Iov: &io, Iovlen: 1, Control: &oob[0], Controllen: uint64(len(oob))}
	if _, _, errno := unix.Syscall(unix.SYS_SENDMSG, to.Fd(), uintptr(unsafe.Pointer(&h)), 0); errno != 0 {
		t.Fatal(errno)
	}
}

func TestDescriptorsArriveCloseOnExec(t *testing.T) {
	ch, peer := pair(t)
	other, err := message.New(peer)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var sent []*os.File
	for i := range 4 {
		f, err := message.Sealed("number", fmt.Append(nil, i))
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, f)
	}
	if err := ch.Send([]byte("four"), sent...); err != nil {
		t.Fatal(err)
	}
	message.CloseAll(sent) // what was sent is another descriptor
	b, files, err := other.Receive(make([]byte, 16))
	if err != nil || string(b) != "four" || len(files) != 4 {
		t.Fatalf("%q with %d descriptors: %v", b, len(files), err)
	}
	defer message.CloseAll(files)
	for i, f := range files {
		said := make([]byte, 8)
		n, _ := f.ReadAt(said, 0)
		if string(said[:n]) != fmt.Sprint(i) {
			t.Errorf("descriptor %d says %q", i, said[:n])
		}
		if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d is inherited by every child", i)
		}
	}
}

// Whatever a refused message brings is closed.
func TestRefusedMessageLeavesNoDescriptor(t *testing.T) {
	withoutCollector(t)
	cases := []struct {
		name    string
		content string
		n       int
		eof     bool
	}{
		{"five descriptors", "x", 5, false},
		{"as many as the kernel takes", "x", 253, false},
		{"too long", strings.Repeat("x", 17), 1, false},
		{"much too long", strings.Repeat("x", 60_000), 4, false},
		{"too long with five", strings.Repeat("x", 17), 5, false},
		{"empty", "", 1, true},
		{"empty with four", "", 4, true},
		{"empty with five", "", 5, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ch, peer := pair(t)
			before := descriptors(t)
			rights(t, peer, []byte(c.content), c.n)
			b, files, err := ch.Receive(make([]byte, 16))
			if err == nil || b != nil || files != nil || c.eof != errors.Is(err, io.EOF) {
				t.Errorf("%q with %d descriptors: %v", b, len(files), err)
			}
			if after := descriptors(t); after != before {
				t.Errorf("%d descriptors before, %d after", before, after)
			}
		})
	}
}

// A message that was refused does not spoil the next.
func TestChannelGoesOnAfterRefusal(t *testing.T) {
	ch, peer := pair(t)
	rights(t, peer, []byte("x"), 5)
	rights(t, peer, []byte("good"), 1)
	if _, _, err := ch.Receive(make([]byte, 16)); err == nil {
		t.Fatal("five descriptors were accepted")
	}
	b, files, err := ch.Receive(make([]byte, 16))
	if err != nil || string(b) != "good" || len(files) != 1 {
		t.Errorf("%q with %d descriptors: %v", b, len(files), err)
	}
	message.CloseAll(files)
}

func TestEndOfChannel(t *testing.T) {
	ends := map[string]func(ch *message.Channel, peer *os.File){
		"closed": func(_ *message.Channel, peer *os.File) { peer.Close() },
		"shut":   func(_ *message.Channel, peer *os.File) { unix.Shutdown(int(peer.Fd()), unix.SHUT_RDWR) },
		"closed with something unread": func(ch *message.Channel, peer *os.File) { // the kernel says ECONNRESET
			ch.Send([]byte("unread"))
			peer.Close()
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			ch, peer := pair(t)
			end(ch, peer)
			if b, files, err := ch.Receive(make([]byte, 16)); err != io.EOF || b != nil || files != nil {
				t.Errorf("%q, %v", b, err)
			}
			if err := ch.Send([]byte("x")); !errors.Is(err, unix.EPIPE) {
				t.Errorf("sent to nobody: %v", err)
			}
		})
	}
	ch, _ := pair(t)
	waits := make(chan error)
	go func() {
		_, _, err := ch.Receive(make([]byte, 16))
		waits <- err
	}()
	ch.Close()
	if err := <-waits; err == nil {
		t.Error("a closed channel received")
	}
}

// A channel takes over what it is given, whatever it is.
func TestChannelOfSomethingElse(t *testing.T) {
	before := descriptors(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := message.New(null); err == nil {
		t.Error("a channel over /dev/null")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := message.New(os.NewFile(uintptr(fd), "internet")); err == nil {
		t.Error("a channel over an internet socket")
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// Both directions at once, each message with a descriptor: none is lost, mixed
// up or left open. Its worth is under the race detector.
func TestBothDirectionsAtOnce(t *testing.T) {
	const rounds = 500
	ch, peer := pair(t)
	other, err := message.New(peer)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	before := descriptors(t)
	var all sync.WaitGroup
	for _, c := range []*message.Channel{ch, other} {
		all.Go(func() { sendNumbers(t, c, rounds) })
		all.Go(func() { receiveNumbers(t, c, rounds) })
	}
	all.Wait()
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func sendNumbers(t *testing.T, c *message.Channel, rounds int) {
	for i := range rounds {
		f, err := message.Sealed("number", fmt.Append(nil, i))
		if err == nil {
			err = c.Send(fmt.Append(nil, i), f)
			f.Close()
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

func receiveNumbers(t *testing.T, c *message.Channel, rounds int) {
	buf := make([]byte, 16)
	for i := range rounds {
		b, files, err := c.Receive(buf)
		if err != nil || len(files) != 1 || string(b) != fmt.Sprint(i) {
			t.Errorf("%d: %q with %d descriptors: %v", i, b, len(files), err)
			return
		}
		said := make([]byte, 16)
		n, _ := files[0].ReadAt(said, 0)
		if string(said[:n]) != fmt.Sprint(i) {
			t.Errorf("%d came with the descriptor of %q", i, said[:n])
		}
		message.CloseAll(files)
	}
}

// changes are ways to change a file through a descriptor of it.
func changes(fd int) map[string]error {
	_, write := unix.Pwrite(fd, []byte("X"), 0)
	p, mapped := unix.Mmap(fd, 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if mapped == nil {
		unix.Munmap(p)
	}
	done := map[string]error{
		"write": write, "shorten": unix.Ftruncate(fd, 1), "lengthen": unix.Ftruncate(fd, 100), "map": mapped,
		"punch a hole": unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4),
	}
	_, done["seal again"] = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_FUTURE_WRITE)
	return done
}

// What was checked in a sealed file stays what is used. The control is the same
// attempts on a memfd without seals, where each must succeed.
func TestSealedNeverChanges(t *testing.T) {
	f, err := message.Sealed("launch", []byte("what was said"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	open, err := unix.MemfdCreate("control", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(open)
	unix.Pwrite(open, []byte("what was said"), 0)
	sealed, control := changes(int(f.Fd())), changes(open)
	for how := range control {
		if control[how] != nil {
			t.Errorf("%s: not shown, a file without seals answers %v", how, control[how])
		}
		if !errors.Is(sealed[how], unix.EPERM) {
			t.Errorf("%s: %v", how, sealed[how])
		}
	}
	said := make([]byte, 100)
	if n, _ := f.ReadAt(said, 0); string(said[:n]) != "what was said" {
		t.Errorf("it says %q now", said[:n])
	}
	// A reopened memfd is a new description of the same file: its seals hold there too.
	again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.WriteAt([]byte("X"), 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("written through /proc: %v", err)
	}
}
