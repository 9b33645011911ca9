package line_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"codespace/tests/need"
)

// The list of commits is edited by a program, as an agent does it: one moves, one
// is squashed into another, and a command runs between.
func TestInteractiveRebase(t *testing.T) {
	inside(t, "git")
	dir := workspace(t)
	write(t, dir, map[string]string{".git-tools/edit": `#!/bin/sh
set -e
grep '^pick' "$1" >picks
{ sed -n 1p picks; sed -n '3s/^pick/squash/p' picks; echo 'exec git log -1 --format=%s >>between'; sed -n 2p picks; } >"$1"
rm picks
`, ".gitignore": ".git-tools\nbetween\n"})
	s := start(t, dir)
	s.says(shell(`set -e
git init -q -b main .
git config user.name Agent
git config user.email agent@example.com
for n in one two three four; do echo $n >$n; git add .; git commit -q -m $n; done`)...)
	s.says(shell("GIT_EDITOR=true GIT_SEQUENCE_EDITOR='sh .git-tools/edit' git rebase -i HEAD~3")...)
	if out := s.says("git", "log", "--format=%B--"); out != "three\n\n--\ntwo\n\nfour\n\n--\none\n\n--\n" && out != "three\n--\ntwo\n\nfour\n--\none\n--\n" {
		t.Errorf("the log is %q", out)
	}
	if out := s.says("git", "show", "--format=", "--name-only", "HEAD~1"); out != "four\ntwo\n" {
		t.Errorf("the squashed commit holds %q", out)
	}
	if got := contents(t, dir+"/between"); got != "two\n" {
		t.Errorf("the command between saw %q", got)
	}
	if out := s.says("git", "status", "--porcelain", "--branch"); out != "## main\n" {
		t.Errorf("git status says %q", out)
	}
	s.says("git", "fsck", "--strict")
}

// npmModule needs a module that comes with its own tests: npm ships some, and
// where a distribution has taken them apart there is none.
func npmModule(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range []string{"/usr/lib", "/usr/local/lib"} {
		module := filepath.Join(dir, "node_modules/npm/node_modules", name)
		if !absent(module + "/test") {
			return module
		}
	}
	need.Feature(t, "npm-modules", false, "npm has no "+name+" with its tests")
	return ""
}

// The assertions that tests of jsonparse use of tape, which npm does not ship.
const tape = `const { test } = require('node:test');
const assert = require('node:assert');

module.exports = (name, body) => test(name, () => new Promise((done, fail) => {
  let left = Infinity;
  const one = (check) => (...args) => {
    try { check(...args); } catch (e) { fail(e); }
    if (--left === 0) done();
  };
  try {
    body({ plan: (n) => { left = n; }, end: done, equal: one(assert.strictEqual), deepEqual: one(assert.deepEqual) });
  } catch (e) { fail(e); }
}));
`

// A published module is packed, installed from the pack and tested with the tests
// that its authors wrote, offline; node runs each file in a process of its own.
func TestNPM(t *testing.T) {
	inside(t, "node")
	inside(t, "npm")
	dir, module := workspace(t), npmModule(t, "jsonparse")
	copyTree(t, dir+"/jsonparse", module)
	write(t, dir, map[string]string{
		"tape/package.json": `{"name": "tape", "version": "0.1.1", "main": "tape.js"}`,
		"tape/tape.js":      tape,
		"app/package.json": `{"name": "app", "version": "1.0.0", "private": true, "scripts": {
  "test": "node --test --test-reporter=tap node_modules/jsonparse/test/*.js"}}`,
	})
	s := start(t, dir)
	packed := strings.TrimSpace(s.says("npm", "pack", "--silent", "--offline", "./jsonparse"))
	if !strings.HasPrefix(packed, "jsonparse-") || absent(dir+"/"+packed) {
		t.Fatalf("npm pack says %q", packed)
	}
	s.says("npm", "install", "--prefix", "app", "--offline", "--no-audit", "--no-fund", "./"+packed, "./tape")
	files, err := filepath.Glob(module + "/test/*.js")
	must(t, err)
	tests := regexp.MustCompile(`(?m)^# tests (\d+)$`)
	out := s.says("npm", "test", "--prefix", "app")
	if found := tests.FindStringSubmatch(out); found == nil || !strings.Contains(out, "\n# pass "+found[1]+"\n") || !strings.Contains(out, "\n# fail 0\n") {
		t.Errorf("npm test says %.2000q", out)
	} else {
		t.Logf("%s: %s of %s tests in %d files pass", packed, found[1], found[1], len(files))
	}
	// The control: tests of a module that is broken fail.
	main := dir + "/app/node_modules/jsonparse/jsonparse.js"
	must(t, os.WriteFile(main, []byte(contents(t, main)+"Parser.prototype.write = function () {};\n"), 0o644))
	if st, out := s.run("node", "--test", "--test-reporter=tap", "app/node_modules/jsonparse/test/utf8.js"); st.text("exit_code") != "1" || !strings.Contains(out, "\nnot ok ") {
		t.Errorf("node --test of a broken module ends with %v and says %.2000q", st.fields, out)
	}
}

// A server that a writing command starts is there for a reading one of the same
// workspace, at the same time, and for nobody else.
func TestServerIsItsWorkspaces(t *testing.T) {
	inside(t, "python3")
	inside(t, "curl")
	dir := workspace(t)
	write(t, dir, map[string]string{"page.html": "<p>hello</p>\n"})
	s := crowded(t, dir, 8)
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that nobody has outside
	must(t, err)
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	server := s.started("python3", "-u", "-m", "http.server", port, "--bind", "127.0.0.1")
	s.until(server, "Serving")
	fetch := func(from string) (answer, string) {
		id, err := s.dispatch(map[string]any{"workspace_id": from, "access": "read"}, "curl", "-sS", "--max-time", "20", "http://127.0.0.1:"+port+"/page.html")
		must(t, err)
		out := s.output(id, 0)
		return s.exited(id), string(out)
	}
	st, out := fetch("site")
	st.wants(t, fields{"exit_code": 0})
	if out != "<p>hello</p>\n" {
		t.Errorf("the server gives %q", out)
	}
	s.until(server, `"GET /page.html HTTP/1.1" 200`)
	st, out = fetch("other")
	st.wants(t, fields{"exit_code": 7}) // curl(1): failed to connect to host
	if strings.Contains(out, "hello") {
		t.Errorf("another workspace gets %q", out)
	}
	s.status(server).wants(t, fields{"state": "running"})
	s.terminate(server)
	s.exited(server)
}

const jobs = `subs := one two three four
all: $(subs)
$(subs):
	$(MAKE) -C $@
.PHONY: all $(subs)
`

// Each job is written down when it begins and when it ends. The jobs named meet of
// two directories can only end together, so without parallel jobs make would hang.
const subjobs = `jobs := $(foreach n,1 2 3 4 5 6 7 8,job$n)
all: meet $(jobs)
job%%:
	@echo + >>../log; echo '$(MAKEFLAGS)' >$@; sleep 0.05; echo - >>../log
meet:
	@%s
`

// At most eight jobs run at a time in all, which a make below knows only from the
// job server of the one above.
func TestMakeJobserver(t *testing.T) {
	inside(t, "make")
	styles := map[string]string{"": "--jobserver-auth="}
	if exec.Command("make", "--jobserver-style=fifo", "--version").Run() == nil { // from 4.4 on
		styles["--jobserver-style=fifo"] = "--jobserver-auth=fifo:"
		styles["--jobserver-style=pipe"] = "--jobserver-auth="
	}
	for style, auth := range styles {
		t.Run("make"+style, func(t *testing.T) {
			dir := workspace(t)
			write(t, dir, map[string]string{"Makefile": jobs})
			for sub, meet := range map[string]string{"one": "echo met >../fifo; touch $@", "two": "read x <../fifo; echo $$x >$@", "three": "touch $@", "four": "touch $@"} {
				write(t, dir, map[string]string{sub + "/Makefile": fmt.Sprintf(subjobs, meet)})
			}
			must(t, syscall.Mkfifo(dir+"/fifo", 0o666))
			out := start(t, dir).says(slices.DeleteFunc([]string{"make", "-j8", style}, func(arg string) bool { return arg == "" })...)
			if strings.Contains(out, "warning") || strings.Contains(out, "jobserver unavailable") {
				t.Errorf("make complains: %q", out)
			}
			wantJobs(t, dir, auth)
		})
	}
}

// wantJobs wants all that make had to do, and never more of it at once than eight.
func wantJobs(t *testing.T, dir, auth string) {
	t.Helper()
	built, err := filepath.Glob(dir + "/*/job*")
	must(t, err)
	met := contents(t, dir+"/two/meet")
	running, most := 0, 0
	for line := range strings.Lines(contents(t, dir+"/log")) {
		if running--; line == "+\n" {
			running += 2
		}
		most = max(most, running)
	}
	if len(built) != 4*8 || met != "met\n" || running != 0 || most > 8 {
		t.Errorf("%d of %d jobs are done, the two that meet have %q, %d go on, at most %d were at once", len(built), 4*8, met, running, most)
	}
	for _, job := range built {
		if flags := contents(t, job); !strings.Contains(flags, auth) {
			t.Errorf("%s is made by a make with the flags %q", job, flags)
		}
	}
	t.Logf("%d of %d jobs, at most %d at once", len(built), 4*8, most)
}

// A producer that nobody reads any more ends by SIGPIPE, silently.
func TestEndlessProducer(t *testing.T) {
	inside(t, "bash")
	dir := workspace(t)
	s := start(t, dir)
	for _, tt := range []struct {
		argv []string
		code int
		says string
	}{
		{shell("yes | head -n 5"), 0, "y\ny\ny\ny\ny\n"},
		{[]string{"bash", "-c", "yes | head -n 5"}, 0, "y\ny\ny\ny\ny\n"},
		{[]string{"bash", "-o", "pipefail", "-c", "yes | head -n1"}, 141, "y\n"},
		{[]string{"bash", "-c", "yes | head -n1; echo ${PIPESTATUS[*]}"}, 0, "y\n141 0\n"},
	} {
		st, out := s.run(tt.argv...)
		st.wants(t, fields{"termination": "exited", "exit_code": tt.code})
		if out != tt.says {
			t.Errorf("%q says %q, want %q", tt.argv, out, tt.says)
		}
		if r := run(t, dir, append([]string{"--"}, tt.argv...)...).wants(t, tt.code); r.stdout != tt.says {
			t.Errorf("run: %q says %q on stdout, want %q", tt.argv, r.stdout, tt.says)
		}
	}
}
