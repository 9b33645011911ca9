package seccomp_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"
)

var inputs = flag.Int("inputs", 1_000_000, "random inputs per profile")

// TestAgainstReference runs the programs and the reference on the expected rows,
// on inputs one bit away from them and on random ones, and wants every
// instruction that can run to have run.
func TestAgainstReference(t *testing.T) {
	for _, debug := range []bool{false, true} {
		f := compiled(t, debug)
		compare := func(d data) {
			if got, want := f.answer(t, d), reference(debug, d); got != want {
				t.Fatalf("debug %v: %+v: %v, the reference says %v", debug, d, got, want)
			}
		}
		rows := expectations(debug)
		derived := 0
		for _, r := range rows {
			for _, d := range neighbours(r.data) {
				compare(d)
				derived++
			}
		}
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		for range *inputs {
			compare(randomData(random, rows))
		}
		ran, reachable, all := coverage(f)
		t.Logf("debug %v: %d rows, %d derived and %d random inputs (seed %d) agree; %d of %d reachable instructions ran, of %d",
			debug, len(rows), derived, *inputs, seed, ran, reachable, all)
		if ran != reachable {
			t.Errorf("debug %v: %d of %d reachable instructions ran; not %v", debug, ran, reachable, missed(f))
		}
	}
}

// coverage counts instructions that ran, that some path leads to, and all.
// libseccomp closes a program with a return that nothing jumps to if it had to
// put a nearer copy of it before.
func coverage(f filter) (ran, reachable, all int) {
	for _, p := range []*program{f.allow, f.deny} {
		for i, path := range p.paths() {
			if p.ran[i] > 0 {
				ran++
			}
			if path {
				reachable++
			}
		}
		all += len(p.code)
	}
	return ran, reachable, all
}

// neighbours is an input and those with one bit of a low word, or the number,
// turned over.
func neighbours(d data) []data {
	list := []data{d}
	for bit := range 32 {
		turned := d
		turned.nr ^= 1 << bit
		list = append(list, turned)
		for arg := range 4 {
			turned := d
			turned.args[arg] ^= 1 << bit
			list = append(list, turned)
		}
	}
	return list
}

var filteredCalls = []uint32{
	unix.SYS_CLONE, unix.SYS_IOCTL, unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_PRLIMIT64,
	unix.SYS_MKNOD, unix.SYS_MKNODAT, unix.SYS_PERSONALITY, unix.SYS_PRCTL, unix.SYS_CHMOD, unix.SYS_FCHMOD,
	unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_CREAT, unix.SYS_OPEN, unix.SYS_OPENAT,
}

// randomData is mostly a call of ours, with arguments that mostly come from the
// rows, some bits turned over, and half of the time with high bits.
func randomData(random *rand.Rand, rows []row) data {
	d := data{nr: random.Uint32N(480), arch: native}
	switch random.IntN(16) {
	case 0:
		d.arch = random.Uint32()
	case 1:
		d.nr = random.Uint32()
	case 2:
		d.nr |= 1 << 30
	case 3, 4, 5, 6, 7, 8, 9, 10:
		d.nr = filteredCalls[random.IntN(len(filteredCalls))]
	}
	for i := range d.args {
		switch random.IntN(4) {
		case 0:
			d.args[i] = uint64(random.Uint32())
		case 1:
			d.args[i] = uint64(random.Uint32N(64))
		default:
			d.args[i] = rows[random.IntN(len(rows))].data.args[i]
		}
		if random.IntN(4) == 0 {
			d.args[i] ^= 1 << random.UintN(32)
		}
		if random.IntN(2) == 0 {
			d.args[i] |= random.Uint64() << 32
		}
	}
	return d
}

// missed lists the instructions that some path leads to and that never ran.
func missed(f filter) []string {
	var list []string
	for n, p := range []*program{f.allow, f.deny} {
		for i, path := range p.paths() {
			if path && p.ran[i] == 0 {
				list = append(list, fmt.Sprintf("program %d instruction %d: %+v", n, i, p.code[i]))
			}
		}
	}
	return list
}
