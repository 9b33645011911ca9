package architecture_test

import (
	"strings"
	"testing"
)

// inGo and inC put one statement where a descriptor can leak.
func inGo(statement string) map[string]string {
	return map[string]string{"runner/more.go": "package runner\n\nimport \"golang.org/x/sys/unix\"\n\nfunc leak() {\n\t" + statement + "\n}\n"}
}

func inC(statement string) map[string]string {
	return map[string]string{"helper/cell.c": "/* open() */\nint leak(void)\n{\n\t" + statement + "\n}\n"}
}

var descriptors = []planted{
	{"Open", inGo(`unix.Open("/", unix.O_RDONLY, 0)`), "cloexec: runner/more.go:Open (line 6)"},
	{"Openat", inGo(`unix.Openat(3, "x", unix.O_PATH, 0)`), "cloexec: runner/more.go:Openat (line 6)"},
	{"Openat2", inGo(`unix.Openat2(3, "x", &unix.OpenHow{Flags: unix.O_PATH})`), "cloexec: runner/more.go:Openat2 (line 6)"},
	{"Socket", inGo(`unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)`), "cloexec: runner/more.go:Socket (line 6)"},
	{"Socketpair", inGo(`unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)`), "cloexec: runner/more.go:Socketpair (line 6)"},
	{"Pipe2", inGo(`unix.Pipe2(nil, unix.O_NONBLOCK)`), "cloexec: runner/more.go:Pipe2 (line 6)"},
	{"Pipe", inGo(`unix.Pipe(nil)`), "cloexec: runner/more.go:Pipe (line 6)"},
	{"MemfdCreate", inGo(`unix.MemfdCreate("x", unix.MFD_ALLOW_SEALING)`), "cloexec: runner/more.go:MemfdCreate (line 6)"},
	{"InotifyInit1", inGo(`unix.InotifyInit1(0)`), "cloexec: runner/more.go:InotifyInit1 (line 6)"},
	{"Dup3", inGo(`unix.Dup3(3, 4, 0)`), "cloexec: runner/more.go:Dup3 (line 6)"},
	{"Dup", inGo(`unix.Dup(3)`), "cloexec: runner/more.go:Dup (line 6)"},
	{"Accept4", inGo(`unix.Accept4(3, unix.SOCK_NONBLOCK)`), "cloexec: runner/more.go:Accept4 (line 6)"},
	{"Eventfd", inGo(`unix.Eventfd(0, 0)`), "cloexec: runner/more.go:Eventfd (line 6)"},
	{"EpollCreate1", inGo(`unix.EpollCreate1(0)`), "cloexec: runner/more.go:EpollCreate1 (line 6)"},
	{"Signalfd", inGo(`unix.Signalfd(-1, nil, 0)`), "cloexec: runner/more.go:Signalfd (line 6)"},
	{"OpenTree", inGo(`unix.OpenTree(3, "", unix.OPEN_TREE_CLONE)`), "cloexec: runner/more.go:OpenTree (line 6)"},
	{"Fsmount", inGo(`unix.Fsmount(3, 0, 0)`), "cloexec: runner/more.go:Fsmount (line 6)"},
	{"Recvmsg", inGo(`unix.Recvmsg(3, nil, nil, 0)`), "cloexec: runner/more.go:Recvmsg (line 6)"},
	{"a duplicate by fcntl", inGo(`unix.FcntlInt(3, unix.F_DUPFD, 10)`), "cloexec: runner/more.go:FcntlInt (line 6)"},
	{"a call by number", inGo(`unix.Syscall(unix.SYS_OPENAT2, 3, 0, 0)`), "cloexec: runner/more.go:Syscall (line 6)"},
	{"another name of the package", map[string]string{"runner/more.go": "package runner\n\nimport x \"golang.org/x/sys/unix\"\n\nvar _, _ = x.Open(\"/\", 0, 0)\n"},
		"cloexec: runner/more.go:Open (line 5)"},
	{"syscall", map[string]string{"runner/more.go": "package runner\n\nimport \"syscall\"\n\nvar _, _ = syscall.Open(\"/\", 0, 0)\n"},
		"cloexec: runner/more.go:Open (line 5)"},

	{"open in C", inC(`open("/O_CLOEXEC", O_RDONLY /* O_CLOEXEC */);`), "cloexec: helper/cell.c:open (line 4)"},
	{"openat in C", inC(`openat(3, "x", O_PATH);`), "cloexec: helper/cell.c:openat (line 4)"},
	{"socket in C", inC(`socket(AF_UNIX, SOCK_STREAM, 0);`), "cloexec: helper/cell.c:socket (line 4)"},
	{"socketpair in C", inC("socketpair(AF_UNIX,\n\t\tSOCK_SEQPACKET, 0, pair);"), "cloexec: helper/cell.c:socketpair (line 4)"},
	{"memfd_create in C", inC(`memfd_create("x", MFD_ALLOW_SEALING);`), "cloexec: helper/cell.c:memfd_create (line 4)"},
	{"signalfd in C", inC(`signalfd(-1, &set, SFD_NONBLOCK);`), "cloexec: helper/cell.c:signalfd (line 4)"},
	{"accept4 in C", inC(`accept4(3, NULL, NULL, SOCK_NONBLOCK);`), "cloexec: helper/cell.c:accept4 (line 4)"},
	{"pipe in C", inC(`pipe(ends);`), "cloexec: helper/cell.c:pipe (line 4)"},
	{"recvmsg in C", inC(`recvmsg(3, &m, MSG_DONTWAIT);`), "cloexec: helper/cell.c:recvmsg (line 4)"},
	{"a call by number in C", inC(`syscall(SYS_openat2, 3, "x", &how, sizeof how);`), "cloexec: helper/cell.c:syscall (line 4)"},
}

func TestDescriptorsMadeRightAreAllowed(t *testing.T) {
	files := plant(t)
	files["runner/more.go"] = inGo(strings.Join([]string{
		`unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0)`,
		`unix.Openat2(3, "x", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC})`,
		`unix.Recvmsg(3, nil, nil, unix.MSG_CMSG_CLOEXEC)`,
		`unix.FcntlInt(3, unix.F_DUPFD_CLOEXEC, 10)`,
		`unix.FcntlInt(3, unix.F_GETFL, 0)`,
		`unix.Syscall(unix.SYS_GETPID, 0, 0, 0)`,
	}, "\n\t"))["runner/more.go"]
	files["helper/cell.c"] = inC(strings.Join([]string{
		`reopen(3); open("/", O_RDONLY | O_CLOEXEC); // open("/", 0)`,
		`dup2(fds[0], 0); syscall(SYS_gettid); puts("open(x)");`,
		`recvmsg(3, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);`,
	}, "\n\t"))["helper/cell.c"]
	files["helper/testdata/attack.c"] = inC(`open("/", 0);`)["helper/cell.c"]
	if found := source(t, files); len(found) != 0 {
		t.Error(found)
	}
}

func TestDescriptorExceptionCountsCalls(t *testing.T) {
	files := plant(t)
	files["helper/cell.c"] = inC(`dup(3); dup(4);`)["helper/cell.c"]
	files[exceptionsOf] = "at-most 1\n2026-01-02 cloexec helper/cell.c:dup 2 the command's own\n"
	if found := source(t, files); len(found) != 0 {
		t.Error(found)
	}
	files["helper/cell.c"] = inC(`dup(3); dup(4); dup(5);`)["helper/cell.c"]
	if found := source(t, files); len(found) != 3 {
		t.Errorf("one more than excepted: %v", found)
	}
}
