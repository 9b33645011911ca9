package line_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codespace/tests/need"
)

const pflag = "github.com/spf13/pflag" // a module that this one depends on, and that depends on nothing

// moduleCache needs the cache in which pflag is, readable by this user.
func moduleCache(t *testing.T) (cache, module string) {
	t.Helper()
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", pflag)
	out, err := list.Output()
	module = strings.TrimSpace(string(out))
	need.Feature(t, "go-module-cache", err == nil && module != "", "go list finds no readable directory of "+pflag)
	return strings.TrimSuffix(filepath.Dir(module), "/"+filepath.Dir(pflag)), module
}

// copyTree copies a directory that may be read-only into one that is not.
func copyTree(t *testing.T, to, from string) {
	t.Helper()
	must(t, os.CopyFS(to, os.DirFS(from)))
	must(t, filepath.Walk(to, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode()|0o200)
	}))
}

// warm gives a workspace the compiled library: the cache of the go that runs this
// test, where there is one, shown read-only and linked to. Without it every
// package of the library is compiled first.
func warm(t *testing.T, dir string) (flags []string) {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	cache := strings.TrimSpace(string(out))
	if err != nil || absent(cache) {
		return nil
	}
	flags = []string{"--mount", cache}
	link := shell("cp -rs " + cache + "/. ~/.cache/go-build/")
	run(t, dir, append(append(flags, "--"), link...)...)
	return flags
}

// TestGo builds and tests real modules offline. They share a workspace, because
// its build cache is kept and another's is not.
func TestGo(t *testing.T) {
	root := filepath.Dir(filepath.Dir(inside(t, "go")))
	dir := workspace(t)
	flags := append(warm(t, dir), "--env", "GOFLAGS=-mod=mod", "--env", "GOPROXY=off", "--env", "GOTOOLCHAIN=local")
	t.Run("a module", func(t *testing.T) {
		_, module := moduleCache(t)
		copyTree(t, dir+"/pflag", module)
		s := start(t, dir, flags...)
		s.says("go", "build", "-C", "pflag", "./...")
		if out := s.says("go", "test", "-C", "pflag", "./..."); !strings.HasPrefix(out, "ok  \t"+pflag) {
			t.Errorf("go test says %q", out)
		}
	})
	t.Run("a module with a dependency", func(t *testing.T) {
		cache, module := moduleCache(t)
		version := module[strings.LastIndex(module, "@")+1:]
		write(t, dir, map[string]string{
			"app/go.mod":  fmt.Sprintf("module example.com/app\n\ngo 1.26\n\nrequire %s %s\n", pflag, version),
			"app/go.sum":  sums(t, pflag+" "+version),
			"app/main.go": appSource,
		})
		s := start(t, dir, append(flags, "--mount", cache, "--env", "GOMODCACHE="+cache)...)
		s.says("go", "build", "-C", "app", "-o", "built", ".")
		if out := s.says("app/built", "--name", "sandbox"); out != "hello sandbox\n" {
			t.Errorf("the program says %q", out)
		}
	})
	t.Run("a package of the library", func(t *testing.T) {
		copyTree(t, dir+"/csv", filepath.Join(root, "src/encoding/csv"))
		write(t, dir, map[string]string{"csv/go.mod": "module example.com/csv\n\ngo 1.26\n"})
		s := start(t, dir, flags...)
		if out := s.says("go", "test", "-C", "csv", "-vet=off", "-run", "Read|Write", "./..."); !strings.HasPrefix(out, "ok  \texample.com/csv") {
			t.Errorf("go test says %q", out)
		}
	})
}

const appSource = `package main

import (
	"fmt"

	"github.com/spf13/pflag"
)

func main() {
	name := pflag.String("name", "", "whom to greet")
	pflag.Parse()
	fmt.Println("hello", *name)
}
`

// sums is what our own go.sum says of a module.
func sums(t *testing.T, module string) string {
	t.Helper()
	var lines string
	for line := range strings.Lines(contents(t, "../../go.sum")) {
		if strings.HasPrefix(line, module) {
			lines += line
		}
	}
	return lines
}

func TestMakeAndGCC(t *testing.T) {
	inside(t, "gcc")
	inside(t, "make")
	dir := workspace(t)
	files := map[string]string{"Makefile": `objects := $(patsubst %.c,%.o,$(sort $(wildcard part*.c)))

check: program
	./program | diff - expected && echo passed

program: main.o $(objects)
	$(CC) -o $@ $^ -lm

%.o: %.c parts.h
	$(CC) -O2 -Wall -Werror -c -o $@ $<
`}
	header, calls, expected := "#include <math.h>\n#include <stdio.h>\n", "", ""
	for i := range 12 {
		header += fmt.Sprintf("double part%d(double x);\n", i)
		files[fmt.Sprintf("part%d.c", i)] = fmt.Sprintf("#include \"parts.h\"\ndouble part%d(double x) { return sqrt(x * x) + %d; }\n", i, i)
		calls += fmt.Sprintf("\tprintf(\"%%.0f\\n\", part%d(-2));\n", i)
		expected += fmt.Sprintln(i + 2)
	}
	files["parts.h"], files["expected"] = header, expected
	files["main.c"] = "#include \"parts.h\"\nint main(void)\n{\n" + calls + "\treturn 0;\n}\n"
	write(t, dir, files)
	s := start(t, dir)
	if out := s.says("make", "-j4", "check"); !strings.HasSuffix(out, "passed\n") || strings.Count(out, "-O2") != 13 {
		t.Errorf("make says %q", out)
	}
	if out, err := exec.Command(dir + "/program").Output(); err != nil || string(out) != expected {
		t.Errorf("on the host the program says %q, %v", out, err)
	}
}

func TestGit(t *testing.T) {
	inside(t, "git")
	dir := workspace(t)
	write(t, dir, map[string]string{"a.txt": "one\n", "sub/b.txt": "two\n"})
	s := start(t, dir)
	s.says("git", "init", "-q", "-b", "main", ".")
	s.says("git", "config", "user.name", "Agent")
	s.says("git", "config", "user.email", "agent@example.com")
	s.says("git", "add", "--all")
	s.says("git", "commit", "-q", "-m", "first")
	write(t, dir, map[string]string{"a.txt": "one\nmore\n"}) // from outside, meanwhile
	if out := s.says("git", "diff", "--stat"); !strings.Contains(out, "1 file changed, 1 insertion(+)") {
		t.Errorf("git diff says %q", out)
	}
	s.says("git", "commit", "-q", "-a", "-m", "second")
	if out := s.says("git", "log", "--format=%an %s"); out != "Agent second\nAgent first\n" {
		t.Errorf("git log says %q", out)
	}
	if out := s.says("git", "status", "--porcelain"); out != "" {
		t.Errorf("git status says %q", out)
	}
	s.says("git", "fsck", "--strict")
}

func TestPython(t *testing.T) {
	inside(t, "python3")
	dir := workspace(t)
	write(t, dir, map[string]string{"test_many.py": `import multiprocessing as mp, os, subprocess, tempfile, threading, unittest

def square(n):
    return n * n, os.getpid()

def fill(queue, n):
    for i in range(n):
        queue.put(i)

class Many(unittest.TestCase):
    def test_pool(self):
        with mp.Pool(3) as pool:
            answers = pool.map(square, range(50), chunksize=1)
        self.assertEqual([a for a, _ in answers], [n * n for n in range(50)])
        self.assertNotIn(os.getpid(), [p for _, p in answers])

    def test_queue(self):
        queue = mp.Queue()
        writers = [mp.Process(target=fill, args=(queue, 100)) for _ in range(2)]
        [w.start() for w in writers]
        self.assertEqual(sorted(queue.get(timeout=30) for _ in range(200)), sorted(2 * list(range(100))))
        [w.join(30) for w in writers]
        self.assertEqual([w.exitcode for w in writers], [0, 0])

    def test_shared_memory(self):
        from multiprocessing import shared_memory
        m = shared_memory.SharedMemory(create=True, size=1 << 20)
        self.addCleanup(m.unlink)
        self.addCleanup(m.close)
        m.buf[:5] = b"hello"
        other = shared_memory.SharedMemory(name=m.name)
        self.assertEqual(bytes(other.buf[:5]), b"hello")
        other.close()

    def test_threads_and_subprocess(self):
        said = []
        threads = [threading.Thread(target=lambda: said.append(subprocess.check_output(["echo", "x"]))) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(said, [b"x\n"] * 4)

    def test_temporary_files(self):
        with tempfile.TemporaryDirectory() as d:
            self.assertTrue(d.startswith("/tmp/"))

unittest.main()
`})
	s := start(t, dir)
	if out := s.says("python3", "test_many.py"); !strings.Contains(out, "Ran 5 tests") || !strings.HasSuffix(out, "OK\n") {
		t.Errorf("python says %q", out)
	}
}

func TestNode(t *testing.T) {
	inside(t, "node")
	dir := workspace(t)
	write(t, dir, map[string]string{"main.js": `const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');
const { execFile, fork } = require('node:child_process');
const http = require('node:http');

if (!isMainThread) {
  let sum = 0;
  for (let i = 0; i <= workerData; i++) sum += i;
  parentPort.postMessage(sum);
} else if (process.argv[2] === 'forked') {
  process.on('message', (n) => { process.send(n + 1); process.disconnect(); });
} else {
  const worker = new Promise((ok, bad) => new Worker(__filename, { workerData: 100000 }).on('message', ok).on('error', bad));
  const child = new Promise((ok, bad) => execFile('sh', ['-c', 'echo from child'], (e, out) => e ? bad(e) : ok(out.trim())));
  const forked = new Promise((ok, bad) => { const f = fork(__filename, ['forked']); f.on('message', ok).on('error', bad); f.send(41); });
  const served = new Promise((ok, bad) => {
    const server = http.createServer((_, res) => res.end('served')).listen(0, '127.0.0.1', () =>
      http.get({ port: server.address().port, host: '127.0.0.1' }, (res) => res.on('data', (d) => { ok(String(d)); server.close(); })).on('error', bad));
  });
  Promise.all([worker, child, forked, served]).then((all) => console.log(all.join(', ')));
}
`})
	s := start(t, dir)
	if out := s.says("node", "main.js"); out != "5000050000, from child, 42, served\n" {
		t.Errorf("node says %q", out)
	}
}
