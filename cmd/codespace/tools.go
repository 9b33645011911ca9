package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codespace/policy"
)

// toolset is the programs of one directory that are on PATH here and that a
// sandbox does not see.
type toolset struct {
	Directory string   `json:"directory"`
	Count     int      `json:"count"`
	Names     []string `json:"names"` // the first few
	Flags     []string `json:"flags"` // of run and mcp, that show them; none where they may not be shown
	Note      string   `json:"note,omitempty"`
}

// What a sandbox shows of the host without being asked (SECURITY.md).
var view = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

func inView(path string) bool {
	return slices.ContainsFunc(view, func(dir string) bool { return within(path, dir) })
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

const namesShown = 4

// tools lists what PATH holds outside the view, and the flags that show all of it.
func (g *ground) tools() ([]toolset, []string) {
	found, all := []toolset{}, []string{}
	for _, dir := range pathDirectories(os.Getenv("PATH")) {
		t := toolset{Directory: dir, Flags: []string{}, Names: []string{}}
		hidden := hiddenPrograms(dir)
		if t.Count = len(hidden); t.Count == 0 {
			continue
		}
		for _, p := range hidden[:min(len(hidden), namesShown)] {
			t.Names = append(t.Names, p.name)
		}
		g.addFlags(&t, hidden)
		found = append(found, t)
		all = append(all, t.Flags...)
	}
	return found, once(all)
}

// once keeps each flag with its value once, in order.
func once(flags []string) []string {
	kept := []string{}
	for i := 0; i+1 < len(flags); i += 2 {
		pair := flags[i : i+2]
		seen := false
		for j := 0; j+1 < len(kept); j += 2 {
			seen = seen || slices.Equal(kept[j:j+2], pair)
		}
		if !seen {
			kept = append(kept, pair...)
		}
	}
	return kept
}

// pathDirectories are the absolute directories of PATH, each once.
func pathDirectories(path string) []string {
	var dirs []string
	for _, dir := range filepath.SplitList(path) {
		dir = filepath.Clean(dir)
		if filepath.IsAbs(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// program is an executable and where it really is.
type program struct{ name, real string }

// hiddenPrograms are the executables of a directory that a sandbox would not find
// or could not follow to their file, by name.
func hiddenPrograms(dir string) []program {
	entries, _ := os.ReadDir(dir) // one that cannot be read gives no program to anybody
	outside := !inView(dir)
	var found []program
	for _, e := range entries {
		if !outside && e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		real, err := filepath.EvalSymlinks(path)
		if err == nil && (outside || !inView(real)) {
			found = append(found, program{e.Name(), real})
		}
	}
	return found
}

const mountsShown = 4

// addFlags says how to show these programs: the directory's root, the roots of what
// its links lead to, and PATH where a sandbox's own does not name the directory.
func (g *ground) addFlags(t *toolset, programs []program) {
	var mounts []string
	refused := ""
	need := func(dir string) {
		root := g.toolRoot(dir)
		switch {
		case slices.ContainsFunc(mounts, func(m string) bool { return within(dir, m) }):
		case root == "":
			refused = dir
		default:
			mounts = append(mounts, root)
		}
	}
	if real, err := filepath.EvalSymlinks(t.Directory); err == nil && !inView(real) {
		need(real)
	}
	for _, p := range programs {
		if dir := filepath.Dir(p.real); !inView(dir) && len(mounts) <= mountsShown {
			need(dir)
		}
	}
	switch {
	case refused != "" && len(mounts) == 0:
		t.Note = "a sandbox may not see " + refused + ": install the programs elsewhere, as in /usr/local"
		return
	case refused != "":
		t.Note = "some are links into " + refused + ", which a sandbox may not see"
	case len(mounts) > mountsShown:
		mounts, t.Note = mounts[:mountsShown], "their links lead to more directories than these"
	}
	for _, m := range mounts {
		t.Flags = append(t.Flags, "--mount", m)
	}
	if !inView(t.Directory) {
		t.Flags = append(t.Flags, "--env", "PATH")
	}
	t.Flags = append(t.Flags, g.companions(mounts)...)
}

// managers keep what their programs need beside them, in a directory of this name.
var managers = []string{".pyenv", ".rbenv", ".nodenv", ".goenv", ".asdf", ".sdkman", ".volta"}

// toolRoot is the directory to show for a directory of programs: the tree they were
// installed as. "" where none may be shown.
func (g *ground) toolRoot(dir string) string {
	candidates := []string{dir}
	if slices.Contains([]string{"bin", "sbin", "shims"}, filepath.Base(dir)) && !holdsSecrets(filepath.Dir(dir)) {
		candidates = []string{filepath.Dir(dir), dir}
	}
	for up := dir; up != "/"; up = filepath.Dir(up) {
		if slices.Contains(managers, filepath.Base(up)) {
			candidates = append([]string{up}, candidates...)
		}
	}
	i := slices.IndexFunc(candidates, g.mountable)
	if i < 0 {
		return ""
	}
	return candidates[i]
}

// holdsSecrets knows of tokens that tools keep beside their programs: cargo's.
func holdsSecrets(dir string) bool {
	for _, name := range []string{"credentials.toml", "credentials"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// mountable asks the policy whether codespace run would take --mount dir: never a
// home directory, /tmp, /run, or where codespace keeps its state.
func (g *ground) mountable(dir string) bool {
	if g == nil || dir == "/" {
		return false
	}
	_, err := policy.Embedded(g.workspace(), policy.Options{Mounts: []string{dir}, Environ: func(name string) (string, bool) {
		v, ok := os.LookupEnv(name)
		if name == "XDG_STATE_HOME" && !ok && os.Getenv("HOME") == "" {
			return g.state(), true
		}
		return v, ok
	}})
	return err == nil
}

// companions are what known tools need besides: rustup's toolchains beside cargo,
// and a Go module cache in a GOPATH.
func (g *ground) companions(mounts []string) []string {
	var flags []string
	for _, m := range mounts {
		rustup := filepath.Join(filepath.Dir(strings.TrimSuffix(m, "/bin")), ".rustup")
		if filepath.Base(strings.TrimSuffix(m, "/bin")) == ".cargo" && isDirectory(rustup) && g.mountable(rustup) {
			flags = append(flags, "--mount", rustup, "--env", "RUSTUP_HOME="+rustup)
		}
		if cache := filepath.Join(m, "pkg/mod"); isDirectory(cache) {
			flags = append(flags, "--env", "GOMODCACHE="+cache)
		}
	}
	return flags
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
