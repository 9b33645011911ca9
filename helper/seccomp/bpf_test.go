package seccomp_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"codespace/helper/seccomp"
)

// data is struct seccomp_data without the instruction pointer, which the
// programs must not read.
type data struct {
	nr, arch uint32
	args     [6]uint64
}

// word is the 32-bit word at an offset of struct seccomp_data.
func (d data) word(offset uint32) (uint32, error) {
	switch {
	case offset == 0:
		return d.nr, nil
	case offset == 4:
		return d.arch, nil
	case offset >= 16 && offset < 64 && offset%4 == 0:
		return uint32(d.args[(offset-16)/8] >> (offset % 8 * 8)), nil
	}
	return 0, fmt.Errorf("load from offset %d", offset)
}

type instruction struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

// program is a decoded program; ran counts how often each instruction ran.
type program struct {
	code []instruction
	ran  []int
}

func decode(raw []byte) *program {
	p := &program{}
	for ; len(raw) >= 8; raw = raw[8:] {
		p.code = append(p.code, instruction{
			code: binary.NativeEndian.Uint16(raw), jt: raw[2], jf: raw[3], k: binary.NativeEndian.Uint32(raw[4:]),
		})
	}
	p.ran = make([]int, len(p.code))
	return p
}

// run interprets the instructions libseccomp emits, and no others.
func (p *program) run(d data) (uint32, error) {
	var acc uint32
	for pc := 0; pc < len(p.code); pc++ {
		p.ran[pc]++
		in := p.code[pc]
		taken := false
		switch in.code {
		case 0x20: // ld [k]
			word, err := d.word(in.k)
			if err != nil {
				return 0, err
			}
			acc = word
			continue
		case 0x54: // and k
			acc &= in.k
			continue
		case 0x06: // ret k
			return in.k, nil
		case 0x05: // ja k
			pc += int(in.k)
			continue
		case 0x15: // jeq k
			taken = acc == in.k
		case 0x25: // jgt k
			taken = acc > in.k
		case 0x35: // jge k
			taken = acc >= in.k
		default:
			return 0, fmt.Errorf("instruction %d has code %#x", pc, in.code)
		}
		if taken {
			pc += int(in.jt)
		} else {
			pc += int(in.jf)
		}
	}
	return 0, fmt.Errorf("ran off the end")
}

// paths says of each instruction whether some path leads to it. Jumps only go
// forward.
func (p *program) paths() []bool {
	reached := make([]bool, len(p.code))
	reached[0] = true
	for pc, in := range p.code {
		switch {
		case !reached[pc] || in.code == 0x06:
		case in.code == 0x05:
			reached[pc+1+int(in.k)] = true
		case in.code == 0x15 && in.k == 0 && pc > 0 && p.code[pc-1].code == 0x54 && p.code[pc-1].k == 0:
			reached[pc+1+int(in.jt)] = true // the high half of a 32-bit mask is 0 and equals 0
		default:
			reached[pc+1+int(in.jt)] = true
			reached[pc+1+int(in.jf)] = true
		}
	}
	return reached
}

// filter is the two programs as a cell has them: allow loaded first.
type filter struct {
	allow, deny *program
}

func newFilter(p seccomp.Programs) filter {
	return filter{allow: decode(p.Allow), deny: decode(p.Deny)}
}

func compiled(t *testing.T, debug bool) filter {
	t.Helper()
	return newFilter(mustCompile(t, debug))
}

// answer combines both as seccomp_run_filters in kernel/seccomp.c does: from
// the newest program to the oldest, a later one only wins with a stricter
// action, compared as signed numbers.
func (f filter) answer(t *testing.T, d data) answer {
	t.Helper()
	const actionFull = 0xffff0000
	result := uint32(allow)
	for _, p := range []*program{f.deny, f.allow} {
		got, err := p.run(d)
		if err != nil {
			t.Fatalf("cannot run program on %+v: %v", d, err)
		}
		if int32(got&actionFull) < int32(result&actionFull) {
			result = got
		}
	}
	return answer(result)
}

// answer is a return value of a program, linux/seccomp.h.
type answer uint32

const (
	allow  answer = 0x7fff0000
	eperm  answer = 0x00050001
	enosys answer = 0x00050026
	kill   answer = 0x80000000
)

func (a answer) String() string {
	switch a {
	case allow:
		return "allow"
	case eperm:
		return "EPERM"
	case enosys:
		return "ENOSYS"
	case kill:
		return "kill"
	}
	return fmt.Sprintf("answer(%#x)", uint32(a))
}
