package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codespace/runner"

	"github.com/spf13/cobra"
)

// embedded holds the flags of one workspace without a configuration file.
type embedded struct {
	workspace string
	mounts    []string
	caches    []string
	env       []string
	timeout   time.Duration
	memory    string
	strict    bool
}

func (e *embedded) register(cmd *cobra.Command) {
	f := cmd.Flags()
	e.workspace, e.timeout = ".", 10*time.Minute
	f.VarP(&single{value: text{&e.workspace, "DIR"}}, "workspace", "w", "the `DIR` to work in, the only one a command may change")
	f.StringArrayVar(&e.mounts, "mount", nil, "show this host `PATH` read-only at the same place (repeatable)")
	f.StringArrayVar(&e.caches, "cache", nil, "keep a private writable directory of this `NAME` between commands (repeatable)")
	f.StringArrayVar(&e.env, "env", nil, "set `NAME=VALUE` for commands, or NAME to the value it has here (repeatable)")
	f.Var(&single{value: span{&e.timeout}}, "timeout", "end a command after this `TIME`, 0 for never")
	f.Var(&single{value: text{&e.memory, "SIZE"}}, "memory", "memory of a command, a `SIZE` as 512MiB (default 2GiB)")
	f.BoolVar(&e.strict, "strict", false, "refuse to run where a limit cannot be enforced")
	cmd.MarkFlagDirname("workspace")
	section(cmd, "Workspace", "workspace")
	section(cmd, "What commands see", "mount", "cache", "env")
	section(cmd, "Limits", "timeout", "memory", "strict")
}

// settings says it the way a runner reads it: nothing relative, nothing to be
// looked up in an environment that a runner does not have.
func (e *embedded) settings(cmd *cobra.Command) (runner.Settings, error) {
	if err := singles(cmd); err != nil {
		return runner.Settings{}, err
	}
	s := runner.Settings{Caches: e.caches, Timeout: &e.timeout, Memory: e.memory, Strict: e.strict, Environ: map[string]string{}}
	if e.workspace == "" || slices.Contains(e.mounts, "") {
		return s, errors.New("cannot use an empty path for --workspace or --mount: name a directory")
	}
	var err error
	if s.Workspace, err = filepath.Abs(e.workspace); err != nil {
		return s, fmt.Errorf("cannot find workspace %s: %w", e.workspace, err)
	}
	for _, m := range e.mounts {
		abs, err := filepath.Abs(m)
		if err != nil {
			return s, fmt.Errorf("cannot find mount %s: %w", m, err)
		}
		s.Mounts = append(s.Mounts, abs)
	}
	for _, v := range e.env {
		if !strings.Contains(v, "=") {
			value, ok := os.LookupEnv(v)
			if !ok {
				return s, fmt.Errorf("cannot pass --env %s: it is not set here; give --env %s=VALUE", v, v)
			}
			v += "=" + value
		}
		s.Variables = append(s.Variables, v)
	}
	for _, name := range []string{"HOME", "XDG_STATE_HOME"} {
		if v, ok := os.LookupEnv(name); ok {
			s.Environ[name] = v
		}
	}
	return s, nil
}

// mcpFlags are either a configuration file or one embedded workspace.
type mcpFlags struct {
	embedded
	config string
}

func (m *mcpFlags) settings(cmd *cobra.Command) (runner.Settings, error) {
	if !cmd.Flags().Changed("config") {
		return m.embedded.settings(cmd)
	}
	if err := singles(cmd); err != nil {
		return runner.Settings{}, err
	}
	if m.config == "" {
		return runner.Settings{}, errors.New("cannot use an empty path for --config: name a file")
	}
	for _, name := range []string{"workspace", "mount", "cache", "env", "timeout", "memory", "strict"} {
		if cmd.Flags().Changed(name) {
			return runner.Settings{}, errors.New("cannot use --" + name + " with --config: say it in the file")
		}
	}
	abs, err := filepath.Abs(m.config)
	return runner.Settings{Config: abs}, err
}
