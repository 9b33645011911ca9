package doctor_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// tools are programs of a home directory, by the directory that is on PATH, and
// what must be mounted to see them; "" where nothing may be.
var tools = []struct{ dir, mount string }{
	{"home/.pyenv/shims", "home/.pyenv"},
	{"home/.pyenv/plugins/venv/shims", "home/.pyenv"},
	{"home/.nvm/versions/node/v22/bin", "home/.nvm/versions/node/v22"},
	{"home/.cargo/bin", "home/.cargo"},
	{"home/go/bin", "home/go"},
	{"home/bin", "home/bin"},
	{"home/.local/bin", "home/.local/bin"}, // beside the state directory
	{"home", ""},
	{"run/tools", "run/tools"},
}

func toolPlace(t *testing.T, root bool) *place {
	p := newPlace(t, root)
	p.mkdir(t, "home/.local/state")
	must(t, os.RemoveAll(p.file("state")))
	must(t, os.Symlink("home/.local/state", p.file("state"))) // XDG_STATE_HOME is there
	for _, tool := range tools {
		p.script(t, tool.dir+"/tool-"+strings.ReplaceAll(tool.dir, "/", "-"))
		p.path += ":" + p.file(tool.dir)
	}
	p.script(t, "home/venvs/black/bin/black-real")
	must(t, os.Symlink(p.file("home/venvs/black/bin/black-real"), p.file("home/.local/bin/black")))
	p.mkdir(t, "home/go/pkg/mod")
	return p
}

func TestToolsAsRoot(t *testing.T) { toolsOutside(t, toolPlace(t, asRoot)) }

func TestToolsAsPlainUser(t *testing.T) { toolsOutside(t, toolPlace(t, asPlain)) }

func toolsOutside(t *testing.T, p *place) {
	d := p.diagnose(t, p.as(codespace("doctor", "--json")...))
	if len(d.Tools) != len(tools) {
		t.Fatalf("%d directories of tools, want %d: %+v", len(d.Tools), len(tools), d.Tools)
	}
	for i, tool := range tools {
		name, got := "tool-"+strings.ReplaceAll(tool.dir, "/", "-"), d.Tools[i]
		if got.Directory != p.file(tool.dir) || got.Count < 1 || !slices.Contains(got.Names, name) {
			t.Errorf("%s: %+v", tool.dir, got)
		}
		if tool.mount == "" {
			if len(got.Flags) > 0 || got.Note == "" {
				t.Errorf("%s would be shown by %q, %q", tool.dir, got.Flags, got.Note)
			}
			continue
		}
		if len(got.Flags) < 4 || got.Flags[0] != "--mount" || got.Flags[1] != p.file(tool.mount) || !slices.Contains(got.Flags, "PATH") {
			t.Errorf("%s is shown by %q, want --mount %s --env PATH", tool.dir, got.Flags, p.file(tool.mount))
		}
		// The positive control of the flags: without them the program is not found.
		if r := p.do(t, p.as(codespace("run", "--", name)...)); r.code != 127 {
			t.Errorf("%s without flags: exit status %d, want 127", name, r.code)
		}
		r := p.do(t, p.as(codespace(append(append([]string{"run"}, got.Flags...), "--", name)...)...))
		if r.code != 0 || r.stdout != name+"\n" {
			t.Errorf("%s with %q: exit status %d, %q: %s", name, got.Flags, r.code, r.stdout, r.stderr)
		}
	}
	all := append(append([]string{"run"}, d.ToolFlags...), "--", "sh", "-c", `black; echo "$GOMODCACHE"`)
	if r := p.do(t, p.as(codespace(all...)...)); r.stdout != "black\n"+p.file("home/go/pkg/mod")+"\n" {
		t.Errorf("with %q: %q: %s", d.ToolFlags, r.stdout, r.stderr)
	}
}

func TestSecretsBesideToolsAreNotShown(t *testing.T) {
	p := newPlace(t, asPlain)
	p.script(t, "home/.cargo/bin/cargo-it")
	p.path += ":" + p.file("home/.cargo/bin")
	must(t, os.WriteFile(p.file("home/.cargo/credentials.toml"), []byte("token"), 0o644))
	d := p.diagnose(t, p.as(codespace("doctor", "--json")...))
	if len(d.Tools) != 1 || d.Tools[0].Flags[1] != p.file("home/.cargo/bin") {
		t.Errorf("shown by %+v", d.Tools)
	}
}

// TestNamesDoNotReachTheTerminal: names of files are anybody's.
func TestNamesDoNotReachTheTerminal(t *testing.T) {
	p := newPlace(t, asPlain)
	p.script(t, "home/bin/evil\x1b]0;title\x07\xff\u202e")
	p.path += ":" + p.file("home/bin")
	r := p.do(t, p.as(codespace("doctor")...))
	if !strings.Contains(r.stdout, "evil") || strings.ContainsAny(r.stdout, "\x1b\x07\u202e") {
		t.Errorf("printed as it is: %q", r.stdout)
	}
	p.diagnose(t, p.as(codespace("doctor", "--json")...))
}
