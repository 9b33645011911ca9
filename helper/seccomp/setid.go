package seccomp

import "syscall"

// fchmodat2Number is newer than some libseccomp 2.5 versions.
const fchmodat2Number = 452

const (
	tmpfile  = 0x400000 // __O_TMPFILE of asm-generic/fcntl.h, without the O_DIRECTORY of O_TMPFILE
	setUser  = syscall.S_ISUID
	setGroup = syscall.S_ISGID
)

// setIDs: no file gets a set-user-ID or set-group-ID bit. The workspace stores its
// files as their owner on disk, who may be the host's root: such a file would run
// as that owner for anybody outside, where no nosuid mount stands before it. A new
// file has the mode it is opened with; openat2 has it behind a pointer and is
// absent. Directories pay too: chmod g+s does not work.
func setIDs() []Rule {
	var rules []Rule
	for _, bit := range []uint32{setUser, setGroup} {
		mode := func(name string, arg uint, when ...Match) {
			rules = append(rules, never(name, "a program that runs as its owner", append(when, flag(arg, bit))...))
		}
		mode("chmod", 1)
		mode("fchmod", 1)
		mode("fchmodat", 2)
		mode("fchmodat2", 2)
		rules[len(rules)-1].Number = fchmodat2Number
		mode("creat", 1)
		mode("mknod", 1)
		mode("mknodat", 2)
		for _, creating := range []uint32{syscall.O_CREAT, tmpfile} {
			mode("open", 2, flag(1, creating))
			mode("openat", 3, flag(2, creating))
		}
	}
	return rules
}
