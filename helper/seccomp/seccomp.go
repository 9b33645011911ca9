// Package seccomp is the system-call filter of a cell: the profile as commented
// data, and its compilation by libseccomp into two programs of classic BPF.
//
// It promises:
//   - Only x86-64 calls pass. Another architecture, and a number with the x32
//     bit, kills the process.
//   - A call reaches the kernel only when a rule allows it, and every rule says
//     why it stands there. Known calls that are refused answer EPERM; what no
//     rule names, newer calls included, answers ENOSYS, on which libraries fall
//     back to what they used before.
//   - Arguments are compared on their low 32 bits, as the kernel reads them.
//     The high bits never change an answer.
//   - The same rules and the same libseccomp give the same bytes; Digest names
//     them in receipts.
//
// It does not promise to look behind pointers (paths, addresses and clone3's
// flags are out of a filter's sight, which is why clone3 is absent), nor to
// replace the other layers: most calls allowed here are harmless only to a
// process without capabilities in namespaces of its own. Nothing here loads a
// filter: codespace-helper compiles it once, and each cell loads the bytes after
// no_new_privs, first Allow, which lets seccomp(2) pass, then Deny.
//
// Two programs, because in one of them libseccomp lets an unconditional allow
// silently win over a masked refusal of the same call. The kernel runs both and
// takes the stricter answer; of two errnos it takes the one of the program
// loaded last (seccomp(2)), so Deny also decides which errno is seen.
package seccomp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"syscall"

	libseccomp "github.com/seccomp/libseccomp-golang"
)

const (
	// instructionSize is sizeof(struct sock_filter), linux/filter.h.
	instructionSize = 8
	// maxInstructions is BPF_MAXINSNS, linux/bpf_common.h.
	maxInstructions = 4096
)

// Programs are two flat arrays of struct sock_filter in the machine's byte
// order, to be loaded in the order of the fields.
type Programs struct {
	Allow []byte // default ENOSYS: the allow-list, and the calls refused whole
	Deny  []byte // default allow: refused values of calls that Allow lets pass
}

// Digest names both programs in receipts and records.
func (p Programs) Digest() string {
	hash := sha256.New()
	for _, program := range [][]byte{p.Allow, p.Deny} {
		fmt.Fprintf(hash, "%d:", len(program))
		hash.Write(program)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// Compile turns Rules(debug) into programs. It fails where an allowed call is
// unknown to libseccomp and on any machine but x86-64.
func Compile(debug bool) (Programs, error) {
	return compile(Rules(debug))
}

func compile(rules []Rule) (Programs, error) {
	arch, err := libseccomp.GetNativeArch()
	if err != nil {
		return Programs{}, fmt.Errorf("cannot compile filter: %w", err)
	}
	if arch != libseccomp.ArchAMD64 {
		return Programs{}, fmt.Errorf("cannot compile filter: the profile is for x86-64, not for %s", arch)
	}
	var first, second []Rule
	for _, rule := range rules {
		switch {
		case rule.Action == Absent: // what the default of the first program does
		case rule.Action == Deny && len(rule.When) > 0:
			second = append(second, rule)
		default:
			first = append(first, rule)
		}
	}
	allow, err := build(libseccomp.ActErrno.SetReturnCode(int16(syscall.ENOSYS)), first)
	if err != nil {
		return Programs{}, fmt.Errorf("cannot compile allow program: %w", err)
	}
	deny, err := build(libseccomp.ActAllow, second)
	if err != nil {
		return Programs{}, fmt.Errorf("cannot compile deny program: %w", err)
	}
	return Programs{Allow: allow, Deny: deny}, nil
}

func build(otherwise libseccomp.ScmpAction, rules []Rule) ([]byte, error) {
	filter, err := libseccomp.NewFilter(otherwise)
	if err != nil {
		return nil, err
	}
	defer filter.Release()
	// Also the answer to the x32 bit, as x32 is not added to the filter.
	if err := filter.SetBadArchAction(libseccomp.ActKillProcess); err != nil {
		return nil, fmt.Errorf("cannot set answer to foreign architectures: %w", err)
	}
	// 2 is a binary tree over the numbers: it halves what loading costs.
	if err := filter.SetOptimize(2); err != nil {
		return nil, fmt.Errorf("cannot set optimization: %w", err)
	}
	for _, rule := range rules {
		if err := add(filter, rule); err != nil {
			return nil, fmt.Errorf("cannot add rule for %s: %w", rule.Name, err)
		}
	}
	return export(filter)
}

func add(filter *libseccomp.ScmpFilter, rule Rule) error {
	call, err := libseccomp.GetSyscallFromNameByArch(rule.Name, libseccomp.ArchAMD64)
	switch {
	case err == nil:
	case rule.Number != 0:
		call = libseccomp.ScmpSyscall(rule.Number)
	case rule.Action == Deny:
		return nil // no number, so it answers ENOSYS
	default:
		return err
	}
	action := libseccomp.ActAllow
	if rule.Action == Deny {
		action = libseccomp.ActErrno.SetReturnCode(int16(syscall.EPERM))
	}
	if len(rule.When) == 0 {
		return filter.AddRuleExact(call, action)
	}
	conditions := make([]libseccomp.ScmpCondition, len(rule.When))
	for i, match := range rule.When {
		conditions[i], err = libseccomp.MakeCondition(match.Arg, libseccomp.CompareMaskedEqual,
			uint64(match.Mask), uint64(match.Value))
		if err != nil {
			return err
		}
	}
	return filter.AddRuleConditionalExact(call, action, conditions)
}

// export reads the program through a pipe: libseccomp before 2.6 writes only to
// a descriptor.
func export(filter *libseccomp.ScmpFilter) ([]byte, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	exported := make(chan error, 1)
	go func() {
		err := filter.ExportBPF(writer)
		writer.Close()
		exported <- err
	}()
	program, err := io.ReadAll(reader)
	if exportErr := <-exported; exportErr != nil {
		return nil, fmt.Errorf("cannot export program: %w", exportErr)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read program: %w", err)
	}
	count := len(program) / instructionSize
	if len(program)%instructionSize != 0 || count == 0 || count > maxInstructions {
		return nil, fmt.Errorf("cannot use program of %d bytes: want 1 to %d instructions of %d bytes",
			len(program), maxInstructions, instructionSize)
	}
	return program, nil
}
