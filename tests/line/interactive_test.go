package line_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestPythonAtAPrompt(t *testing.T) {
	inside(t, "python3")
	d := start(t, workspace(t)).converse("python3", "-q")
	d.answers(">>> ", "6*7\n")
	d.expect("42\r\n")
	d.answers(">>> ", "def twice(x):\n")
	d.answers("... ", "    return 2*x\n")
	d.answers("... ", "\n")
	d.answers(">>> ", "twice('ab')\n")
	d.expect("'abab'\r\n")
	d.answers(">>> ", "import os, time; os.get_terminal_size()\n")
	d.expect("columns=80, lines=24")
	// Caught, because CPython ends by SIGINT if it ever was interrupted otherwise, and
	// in short sleeps, because one that comes just before a pause would leave it waiting.
	d.answers(">>> ", `exec("try:\n print('up' + '!')\n while True: time.sleep(0.1)\nexcept KeyboardInterrupt:\n print('inter' + 'rupted')")`+"\n")
	d.answers("up!", "\x03")
	d.expect("interrupted")
	d.answers(">>> ", "\x04") // the end of input, as a terminal has it
	d.ends(0)
}

// A job is stopped, resumed behind and before, and interrupted: the shell says so,
// and the kernel of the host says the same of the job.
func TestJobControl(t *testing.T) {
	s, m := start(t, workspace(t)), marker()
	d := s.converse("bash", "--norc", "-i")
	job := "sleep " + m
	d.types("PS1=ready'> '\n") // whose echo is not the prompt
	d.expect("ready> ")
	d.types(job + "\n")
	appears(t, m)
	pid := sleepers(t, m)[0]
	is := func(want string) {
		t.Helper()
		eventually(t, soon, "the job is "+want, func() bool { return jobState(t, pid) == want })
	}
	is("before")
	d.types("\x1a")
	d.expect("[1]+  Stopped                 " + job)
	is("stopped")
	d.answers("ready> ", "jobs\n")
	d.expect("[1]+  Stopped                 " + job)
	d.answers("ready> ", "bg\n")
	d.expect("[1]+ " + job + " &")
	is("behind")
	d.answers("ready> ", "jobs\n")
	d.expect("[1]+  Running                 " + job)
	d.answers("ready> ", "fg\n")
	d.expect(job + "\r\n")
	is("before")
	d.types("\x03")
	d.answers("ready> ", "echo over:$?; jobs; exit 4\n")
	if left := d.expect("over:130\r\n"); strings.Contains(left, "Stopped") {
		t.Errorf("there is still a job: %q", left)
	}
	d.ends(4)
	gone(t, promptly, m)
	for _, complaint := range []string{"no job control", "cannot set terminal process group", "Inappropriate ioctl"} {
		if strings.Contains(d.all, complaint) {
			t.Errorf("bash complains: %q", d.all)
		}
	}
}

// jobState is what the kernel says of a job of a shell.
func jobState(t testing.TB, pid string) string {
	t.Helper()
	switch state, group, foreground := kernelState(t, pid); {
	case state == "T":
		return "stopped"
	case group == foreground:
		return "before"
	default:
		return "behind"
	}
}

func TestEditor(t *testing.T) {
	inside(t, "vi")
	dir := workspace(t)
	write(t, dir, map[string]string{"poem": "one\ntwo\nthree\n"})
	d := start(t, dir).converse("vi", "-u", "NONE", "poem")
	d.expect("three")
	d.types("/two\r")
	d.types("ccTWO and a half\x1b")
	d.types("Gofour\x1b")
	d.types(":wq\r")
	d.ends(0)
	if got := contents(t, dir+"/poem"); got != "one\nTWO and a half\nthree\nfour\n" {
		t.Errorf("the file holds %q; on the screen: %q", got, d.all)
	}
	if !absent(dir + "/.poem.swp") {
		t.Error("the editor left its swap file")
	}
}

// A pager shows what fits, which is less once the terminal is smaller.
func TestPager(t *testing.T) {
	inside(t, "less")
	dir, name, book := workspace(t), "book-"+marker(), ""
	for i := range 200 {
		book += fmt.Sprintf("line %03d\n", i+1)
	}
	write(t, dir, map[string]string{name: book})
	s := start(t, dir)
	d := s.converse("less", name)
	if page := d.expect("\x1b[7m" + name); !strings.Contains(page, "line 001") || !strings.Contains(page, "line 023") || strings.Contains(page, "line 024") {
		t.Errorf("the first page of 24 lines is %q", page)
	}
	d.types(" ")
	if page := d.expect("line 046\r\n:"); strings.Contains(page, "line 047") || !strings.Contains(page, "line 024") {
		t.Errorf("the second page is %q", page)
	}
	// less forgets a new size that it is told of between its prompt and its read.
	eventually(t, soon, "less reads", func() bool {
		pids := processes(t, "less", name)
		if len(pids) != 1 {
			t.Fatalf("%d processes are less", len(pids))
		}
		state, _, _ := kernelState(t, pids[0])
		return state == "S"
	})
	s.resize(d.id, 10, 80).wants(t, fields{"ok": true})
	if page := d.expect("line 032\r\n:"); !strings.Contains(page, "line 024\r\nline 025") {
		t.Errorf("the page of 10 lines is %q", page)
	}
	d.types("G")
	d.expect("line 200")
	d.types("q")
	d.ends(0)
	if strings.Contains(d.all, "line 060") {
		t.Errorf("a page that was not asked for was shown: %q", d.all)
	}
}

func TestKeyIsMadeAtATerminal(t *testing.T) {
	inside(t, "ssh-keygen")
	dir := workspace(t)
	s := start(t, dir)
	const secret = "correct horse 9"
	d := s.converse("ssh-keygen", "-t", "ed25519", "-C", "agent")
	d.answers("(/home/sandbox/.ssh/id_ed25519): ", "key\n")
	d.answers("Enter passphrase", secret+"\n")
	d.answers("Enter same passphrase again: ", secret+"\n")
	d.expect("SHA256:")
	d.ends(0)
	if strings.Contains(d.all, secret) || strings.Contains(d.all, "horse") {
		t.Errorf("the passphrase is echoed: %q", d.all)
	}
	if mode := lstat(t, dir+"/key").Mode & 0o7777; mode != 0o600 {
		t.Errorf("the mode of the private key is %o", mode)
	}
	public := contents(t, dir+"/key.pub")
	if got := s.says("ssh-keygen", "-y", "-P", secret, "-f", "key"); got != public || !strings.HasPrefix(got, "ssh-ed25519 ") {
		t.Errorf("the private key is that of %q, the public one is %q", got, public)
	}
	if st, out := s.run("ssh-keygen", "-y", "-P", "wrong", "-f", "key"); st.text("exit_code") == "0" {
		t.Errorf("the key opens without its passphrase: %q", out)
	}
}
