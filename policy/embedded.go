package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options are what the person who types `codespace mcp -w` or `codespace run -w`
// may add to the defaults. The zero value adds nothing.
type Options struct {
	Mounts    []string       // host paths to show read-only; relative ones from the current directory
	Caches    []string       // names, besides go-build, npm, pip and cargo
	Variables []string       // "NAME=VALUE", or "NAME" for the value it has now
	Timeout   *time.Duration // wall time of a command, 0 for none; nil is 10 minutes
	Memory    string         // per command, as "512MiB"; "" is 2 GiB
	Strict    bool           // refuse to run where a limit cannot be enforced

	// Environ looks up HOME, XDG_STATE_HOME and "NAME" variables.
	// nil is os.LookupEnv.
	Environ func(name string) (value string, found bool)
}

// embeddedCaches are there without being asked for.
var embeddedCaches = []string{"go-build", "npm", "pip", "cargo"}

// Embedded is the registry of one workspace, dir: profile workspace-write,
// network restricted, approvals off, identity and default limits as Load's, its
// id made from the directory's name, best effort unless o.Strict. It listens on
// nothing and creates nothing, not even State.Dir, which is
// $XDG_STATE_HOME/codespace/ID-HASH (else below $HOME/.local/state). What dir and
// o say is held to the rules of Load.
func Embedded(dir string, o Options) (*Registry, error) {
	if o.Environ == nil {
		o.Environ = os.LookupEnv
	}
	home, _ := o.Environ("HOME")
	states, f := o.stateHome(home)
	if f != nil {
		return nil, fmt.Errorf("cannot place the state: %w", f)
	}
	g := hostGround(home)
	g.refuse([]area{{location: states, what: "CodeSpace's own state", next: moveStateHome, deep: true}})
	at, f := argument(dir, g.root())
	if f != nil {
		return nil, fmt.Errorf("cannot use workspace %s: %w", quote(dir), f)
	}
	w := builtinProfiles()[profileWrite].workspace()
	w.ID, w.Root = safeID(filepath.Base(at.path)), at.path
	w.Profile, w.Environment = profileWrite, hostEnvironment
	if err := o.apply(&w, g); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(w.Root))
	state := filepath.Join(states.path, w.ID+"-"+hex.EncodeToString(sum[:8]))
	return &Registry{
		State:      State{Dir: state},
		Identity:   defaultIdentity,
		workspaces: map[string]Workspace{w.ID: w},
	}, nil
}

// The two ways out of a state directory in the wrong place.
const (
	moveStateHome = "set XDG_STATE_HOME to a directory of yours outside of it, for example XDG_STATE_HOME=$HOME/.codespace"
	setStateHome  = "set XDG_STATE_HOME to an absolute path of yours, outside the workspace"
)

// stateHome is where all embedded workspaces keep their state. A relative
// XDG_STATE_HOME counts as none, as its specification has it.
func (o Options) stateHome(home string) (location, *flaw) {
	base, _ := o.Environ("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		base = filepath.Join(home, ".local/state")
	}
	if !filepath.IsAbs(base) {
		return location{}, &flaw{
			found:   "neither XDG_STATE_HOME nor HOME as an absolute path",
			allowed: "one of them",
			next:    setStateHome,
		}
	}
	at, f := prospect(filepath.Join(base, "codespace"))
	if f != nil {
		f.next = setStateHome
	}
	return at, f
}

// argument applies r to a path of the command line.
func argument(unsafePath string, r rule[string, location]) (location, *flaw) {
	absolute, err := filepath.Abs(unsafePath)
	if unsafePath == "" || err != nil {
		return location{}, &flaw{found: quote(unsafePath), allowed: r.allowed, next: "name a path"}
	}
	return r.apply(absolute)
}

// apply puts o into w.
func (o Options) apply(w *Workspace, g *ground) error {
	w.Enforcement = BestEffort
	if o.Strict {
		w.Enforcement = Strict
	}
	if o.Timeout != nil {
		n, f := wallLimit.rule.apply(showDuration(*o.Timeout))
		if f != nil {
			return fmt.Errorf("cannot use --timeout: %w", f)
		}
		wallLimit.set(&w.Limits, n)
	}
	if o.Memory != "" {
		n, f := memoryLimit.rule.apply(o.Memory)
		if f != nil {
			return fmt.Errorf("cannot use --memory: %w", f)
		}
		memoryLimit.set(&w.Limits, n)
	}
	if err := o.applyMounts(w, g); err != nil {
		return err
	}
	if err := o.applyCaches(w); err != nil {
		return err
	}
	return o.applyVariables(w)
}

func (o Options) applyMounts(w *Workspace, g *ground) error {
	var places []location
	for _, unsafePath := range o.Mounts {
		at, f := argument(unsafePath, g.mount())
		if f == nil {
			f = once(at, places)
		}
		if f == nil && at.path == w.Root {
			f = &flaw{found: "the workspace itself", allowed: "other paths", next: "leave it out"}
		}
		if f != nil {
			return fmt.Errorf("cannot use --mount %s: %w", quote(unsafePath), f)
		}
		places = append(places, at)
	}
	w.Mounts = mountsAt(places)
	return nil
}

func (o Options) applyCaches(w *Workspace) error {
	for _, name := range append(embeddedCaches[:len(embeddedCaches):len(embeddedCaches)], o.Caches...) {
		cache, f := cacheName.apply(name)
		if f != nil {
			return fmt.Errorf("cannot use --cache: %w", f)
		}
		if !hasCache(w.Caches, name) {
			w.Caches = append(w.Caches, cache)
		}
	}
	return nil
}

func (o Options) applyVariables(w *Workspace) error {
	for _, variable := range o.Variables {
		name, value, given := strings.Cut(variable, "=")
		_, f := variableName.apply(name)
		if f != nil {
			return fmt.Errorf("cannot use --env: %w", f)
		}
		if !given {
			value, given = o.Environ(name)
		}
		if _, again := w.Variables[name]; !given || again {
			f = &flaw{found: name, allowed: "a name that has a value here, each once", next: "write " + name + "=VALUE"}
		} else {
			value, f = variableValue.apply(value)
		}
		if f != nil {
			return fmt.Errorf("cannot use --env %s: %w", name, f)
		}
		w.Variables[name] = value
	}
	return nil
}

// safeID makes an id of a directory's name.
func safeID(base string) string {
	id := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c) {
			return c
		}
		return '-'
	}, strings.ToLower(base))
	id = strings.Trim(id[:min(len(id), 64)], "._-")
	if id == "" {
		return "workspace"
	}
	return id
}
