package main

import (
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"codespace/tests/need"
)

// A client of ours would share our mistakes.
func TestClientIsNotOurs(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	theirs := 0
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
			switch first, _, _ := strings.Cut(path, "/"); {
			case strings.HasPrefix(path, "github.com/mark3labs/mcp-go/client"):
				theirs++
			case strings.HasPrefix(path, "github.com/mark3labs/mcp-go/"):
			case first == "codespace" || strings.Contains(first, "."):
				t.Errorf("%s imports %s", source, path)
			}
		}
	}
	if theirs == 0 {
		t.Error("nothing imports the client of mcp-go")
	}
}

func TestEveryStepIsAsPromised(t *testing.T) {
	program := need.Binary(t, "codespace")
	need.Binary(t, "codespace-runner")
	need.Binary(t, "codespace-helper")
	need.UserNamespaces(t)
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	t.Setenv("HOME", "/proc/nobody")
	var seen strings.Builder
	if err := play(program, &screen{out: &seen}); err != nil {
		t.Errorf("%v\n%s", err, seen.String())
	}
	lines := strings.Split(strings.TrimSpace(seen.String()), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "demo: ") || !strings.HasSuffix(last, " steps as promised") {
		t.Errorf("the last line is %q", last)
	}
	if strings.Contains(seen.String(), "\x1b") {
		t.Error("coloured, though this is no terminal")
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Without this a demo that checks nothing would pass for one that works.
func TestWhatIsNotAsPromisedIsSaid(t *testing.T) {
	need.Binary(t, "codespace-runner")
	for name, program := range map[string]string{"no program": filepath.Join(t.TempDir(), "none"), "a program that is no server": need.Command(t, "false")} {
		t.Run(name, func(t *testing.T) {
			var seen strings.Builder
			if err := play(program, &screen{out: &seen}); err == nil {
				t.Errorf("all was well:\n%s", seen.String())
			}
			if strings.Contains(seen.String(), "✓ exited") || !strings.Contains(seen.String(), "✗") {
				t.Errorf("shown:\n%s", seen.String())
			}
		})
	}
}

func TestTalkFindsWhatIsWrong(t *testing.T) {
	program := need.Binary(t, "codespace")
	need.Binary(t, "codespace-runner")
	need.Binary(t, "codespace-helper")
	need.UserNamespaces(t)
	d := &demo{screen: &screen{out: io.Discard}, sessions: map[time.Duration]*session{}, program: program}
	d.scratch = t.TempDir()
	if err := d.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer d.gate.Close()
	defer d.kill()
	s, err := d.session(t.Context(), liveLimit)
	if err != nil {
		t.Fatalf("%v\n%s", err, d.serverLog())
	}
	ids, seen, err := d.open(t.Context(), s, script{"read", "echo hello", "goodbye"})
	if err == nil || len(ids) != 1 || seen != "hello\n" {
		t.Fatalf("a script that says something else: %q, %q, %v", ids, seen, err)
	}
	if _, err := s.end(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	held, _, err := d.open(t.Context(), s, script{"read", "echo hello; read word; exit 1", "hello"})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.running(t.Context(), append(ids, held...)); n != 1 || err != nil {
		t.Errorf("%d commands are running beside one that has ended, %v", n, err)
	}
	if err := s.finish(t.Context(), held, "word\n"); err == nil {
		t.Error("a command that fails has finished well")
	}
	if err := s.write(t.Context(), held[0], "word\n"); err == nil {
		t.Error("a command that has ended took input")
	}
}

func TestChecksFindWhatIsWrong(t *testing.T) {
	zero := 0
	well := status{Termination: "exited", Code: &zero, output: "hello"}
	g, err := openGate()
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if said, err := g.knock([]string{"true"})(t.Context()); err == nil {
		t.Errorf("a knock that does not get through says %q", said)
	}
	for name, check := range map[string]check{
		"exit code": exits(1), "time limit": timesOut, "output": says("goodbye"), "order": says("llo", "hel"), "process": gone(strings.Join(os.Args, " ")),
		"file": absent("demo_test.go"), "commit": (&demo{scratch: t.TempDir()}).committed, "network": g.untouched,
	} {
		if check(well) == nil {
			t.Errorf("%s: all was well", name)
		}
	}
}
