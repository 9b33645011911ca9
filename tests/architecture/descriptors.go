package architecture

import (
	"path"
	"regexp"
	"strings"
)

// descriptorCalls make a descriptor and take a flag by which it is closed on
// exec. Those of the second line take none, so no call of them can be right.
var descriptorCalls = strings.Fields(`
	Open Openat Openat2 Socket Socketpair Pipe2 MemfdCreate InotifyInit1 Dup3 Accept4 Eventfd EventFd EpollCreate1 Signalfd SignalFd TimerfdCreate FanotifyInit OpenTree Fsopen Fsmount Fspick Recvmsg RecvmsgBuffers
	Pipe InotifyInit Dup Dup2 Accept EpollCreate Creat`)

// rawCalls are the same by number, through Syscall and its kin.
var rawCalls = regexp.MustCompile(`(?i)\b(SYS|__NR)_(open|openat|openat2|socket|socketpair|pipe|pipe2|memfd_create|inotify_init1?|dup|dup2|dup3|accept4?|eventfd2?|epoll_create1?|signalfd4?|timerfd_create|fanotify_init|open_tree|fsopen|fsmount|fspick|recvmsg)\b`)

// checkDescriptors wants every descriptor to be close-on-exec from its creation,
// shown in the text of the call itself.
func checkDescriptors(t *Tree, _ *Rules) []Violation {
	var found []Violation
	for _, f := range t.product() {
		for _, c := range t.calls(f) {
			pkg, name := c.name[:strings.LastIndexByte(c.name, '.')], path.Ext(c.name)[1:]
			if (pkg == "golang.org/x/sys/unix" || pkg == "syscall") && leaks(name, c.text) {
				found = append(found, leak(f, name, c.line))
			}
		}
	}
	return found
}

func leaks(name, text string) bool {
	switch {
	case strings.Contains(text, "CLOEXEC"):
		return false
	case strings.HasPrefix(name, "Fcntl"):
		return strings.Contains(text, "F_DUPFD")
	case strings.Contains(name, "Syscall"):
		return rawCalls.MatchString(text)
	}
	for _, known := range descriptorCalls {
		if name == known {
			return true
		}
	}
	return false
}

func leak(f *File, name string, line int) Violation {
	return Violation{Check: "cloexec", Place: f.Path + ":" + name, Line: line, Size: 1, What: "makes a descriptor without its CLOEXEC flag in the call"}
}

// callsInC are the same in C. dup2 and dup3 are left out: they are how a command
// is given its descriptors 0, 1 and 2.
var callsInC = regexp.MustCompile(`\b(open|openat|creat|socket|socketpair|pipe2?|memfd_create|inotify_init1?|dup|accept4?|eventfd|epoll_create1?|signalfd|timerfd_create|fanotify_init|open_tree|fsopen|fsmount|fspick|recvmsg|syscall)\s*\(`)

func checkDescriptorsInC(t *Tree, _ *Rules) []Violation {
	var found []Violation
	for _, f := range t.Files {
		if !productC(f.Path) {
			continue
		}
		code := plainC(string(f.Body))
		for _, at := range callsInC.FindAllStringSubmatchIndex(code, -1) {
			name, text := code[at[2]:at[3]], parenthesis(code[at[1]-1:])
			if strings.Contains(text, "CLOEXEC") || name == "syscall" && !rawCalls.MatchString(text) {
				continue
			}
			found = append(found, leak(f, name, 1+strings.Count(code[:at[0]], "\n")))
		}
	}
	return found
}

func inC(name string) bool { return path.Ext(name) == ".c" || path.Ext(name) == ".h" }

// productC leaves out what only tests compile.
func productC(name string) bool { return inC(name) && !below("tests", name) && !testdata(name) }

var notCode = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(\\.|[^"\\\n])*"|'(\\.|[^'\\\n])*'`)

// plainC blanks comments and literals, and keeps every line where it is.
func plainC(code string) string {
	return notCode.ReplaceAllStringFunc(code, func(s string) string {
		return strings.Repeat("\n", strings.Count(s, "\n")) + " "
	})
}

// parenthesis is the text from an opening parenthesis to the one that closes it.
func parenthesis(code string) string {
	depth := 0
	for i, c := range code {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return code[:i+1]
		}
	}
	return code
}
