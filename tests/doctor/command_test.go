package doctor_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"codespace/tests/need"
)

// configPlace is a place with a configuration file of this text.
func configPlace(t *testing.T, text string) *place {
	t.Helper()
	p := newPlace(t, asPlain)
	p.mkdir(t, "home/site")
	p.mkdir(t, "home/docs")
	text = strings.ReplaceAll(text, "@", p.dir)
	must(t, os.WriteFile(p.file("home/c.toml"), []byte(text), 0o600))
	p.give(t, p.file("home/c.toml"))
	return p
}

const goodConfig = `[state]
dir = "@/state/x"
[profiles.ci]
extends = "workspace-write"
[workspaces.site]
root = "@/home/site"
profile = "ci"
[workspaces.docs]
root = "@/home/docs"
profile = "read-only"
limits = { enforcement = "best-effort" }
`

func TestConfigCheck(t *testing.T) {
	p := configPlace(t, goodConfig)
	for _, args := range [][]string{{"--config", p.file("home/c.toml")}, {p.file("home/c.toml")}} {
		r := p.do(t, p.as(codespace(append([]string{"config", "check"}, args...)...)...))
		lines := strings.Split(r.stdout, "\n")
		if r.code != 0 || lines[0] != "ok: 2 workspaces" || len(lines) < 5 {
			t.Fatalf("exit status %d, %q, %q", r.code, r.stdout, r.stderr)
		}
		for i, want := range [][]string{{"ID", "ROOT", "PROFILE", "NETWORK", "ENFORCEMENT"},
			{"docs", p.file("home/docs"), "read-only", "restricted", "best-effort"}, {"site", p.file("home/site"), "ci", "restricted", "strict"}} {
			if got := strings.Fields(lines[i+2]); strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("line %q, want %q", lines[i+2], want)
			}
		}
	}
}

func TestConfigCheckSaysWhere(t *testing.T) {
	p := configPlace(t, goodConfig+"netwrk = 3\n[profiles.other]\nextends = \"bogus\"\n")
	r := p.do(t, p.as(codespace("config", "check", p.file("home/c.toml"))...))
	place := regexp.MustCompile(`^` + regexp.QuoteMeta(p.file("home/c.toml")) + `:(12|14):\d+: .`)
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
	if r.code != 1 || r.stdout != "" || len(lines) != 2 || !place.MatchString(lines[0]) || !place.MatchString(lines[1]) {
		t.Errorf("exit status %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
	}
}

func TestConfigCheckWantsOneFile(t *testing.T) {
	p := configPlace(t, goodConfig)
	for _, args := range [][]string{{}, {"a", "b"}, {"--config", "a", "b"}, {p.file("home/none.toml")}, {p.file("home")}} {
		r := p.do(t, p.as(codespace(append([]string{"config", "check"}, args...)...)...))
		if r.code != 1 || r.stdout != "" || r.stderr == "" {
			t.Errorf("%q: exit status %d, stdout %q, stderr %q", args, r.code, r.stdout, r.stderr)
		}
	}
}

func TestCompletion(t *testing.T) {
	p := newPlace(t, asPlain)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		r := p.do(t, codespace("completion", shell))
		if r.code != 0 || !strings.Contains(r.stdout, "codespace") || len(r.stdout) < 1000 {
			t.Errorf("%s: exit status %d, %d bytes", shell, r.code, len(r.stdout))
		}
	}
	if r := p.do(t, codespace("completion", "tcsh")); r.code != 1 || r.stdout != "" {
		t.Errorf("tcsh: exit status %d, %q", r.code, r.stdout)
	}
	need.Command(t, "bash")
	if r := p.do(t, []string{"bash", "-c", `source <("$1" completion bash) && complete -p codespace`, "bash", codespace()[0]}); r.code != 0 {
		t.Errorf("bash does not take it: %s", r.stderr)
	}
	if r := p.do(t, codespace("__complete", "d")); !strings.Contains(r.stdout, "doctor\t") {
		t.Errorf("d is completed to %q", r.stdout)
	}
	for want, line := range map[string][]string{ // what stands before is parsed twice
		"--memory\t": {"run", "-w", ".", "--timeout", "1s", "--mem"},
		"--cache\t":  {"mcp", "--config", "file", "--c"},
	} {
		if r := p.do(t, codespace(append([]string{"__complete"}, line...)...)); !strings.Contains(r.stdout, want) {
			t.Errorf("%q is completed to %q, %q", line, r.stdout, r.stderr)
		}
	}
}

// commands reads the names of subcommands off a help text.
func commands(help string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+) {2,}[A-Z]`).FindAllStringSubmatch(help, -1) {
		names = append(names, m[1])
	}
	return names
}

// TestHelp walks every command: each says how it is called, what it does and gives
// an example, in lines that a terminal holds.
func TestHelp(t *testing.T) {
	p := newPlace(t, asPlain)
	todo, seen := [][]string{{}}, 0
	for ; len(todo) > 0; todo = todo[1:] {
		r := p.do(t, codespace(append(todo[0], "--help")...))
		seen++
		if r.code != 0 || !strings.Contains(r.stdout, "\nUsage\n  codespace") || !strings.Contains(r.stdout, "\nExamples\n  ") {
			t.Errorf("%q --help: exit status %d:\n%s", todo[0], r.code, r.stdout)
		}
		for _, line := range strings.Split(r.stdout, "\n") {
			if len(line) > 100 {
				t.Errorf("%q --help: a line of %d: %s", todo[0], len(line), line)
			}
		}
		if again := p.do(t, codespace(append([]string{"help"}, todo[0]...)...)); again.stdout != r.stdout {
			t.Errorf("help %q differs from --help:\n%s\n%s", todo[0], again.stdout, r.stdout)
		}
		for _, name := range commands(r.stdout) {
			todo = append(todo, append(append([]string{}, todo[0]...), name))
		}
	}
	if seen < 8 {
		t.Errorf("only %d commands were found", seen)
	}
	if r := p.do(t, codespace("help", "nonsense")); r.code != 1 || r.stdout != "" {
		t.Errorf("help nonsense: exit status %d, %q", r.code, r.stdout)
	}
}
