// Command codespace runs commands in sandboxed workspaces: for agents, over MCP
// (codespace mcp), and for CI and people, one at a time (codespace run).
package main

import (
	"errors"
	"fmt"
	"os"

	"codespace/runner/failpoint"

	"github.com/spf13/cobra"
)

var version = "unversioned"

// status is an error that is only an exit status: everything has been said.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

const (
	exitFailure = 1   // of every command but run
	exitTimeout = 124 // run: the time limit ended the command
	exitSandbox = 125 // run: usage, no sandbox, or the end is not known
	exitNoExec  = 126 // run: found and not executable
	exitNoEntry = 127 // run: not found
	exitSignal  = 128 // run: plus the signal
)

func main() {
	if err := failpoint.Open(); err != nil {
		fmt.Fprintln(os.Stderr, "codespace:", err)
		os.Exit(exitFailure)
	}
	root := rootCommand()
	ran, err := root.ExecuteC()
	if err == nil {
		return
	}
	var s status
	if errors.As(err, &s) {
		os.Exit(int(s))
	}
	fmt.Fprintln(os.Stderr, "codespace:", err)
	if ran.Name() == "run" {
		os.Exit(exitSandbox)
	}
	os.Exit(exitFailure)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "codespace",
		Short: "Run commands in sandboxed workspaces",
		Long: `Run commands in sandboxed workspaces, for agents over MCP and for people and CI.

A workspace is a directory, the only one that its commands may change. Each
command gets a sandbox cell of its own: no privileges, no network, nothing of
the host in view but the system's programs and the workspace. Where the sandbox
cannot be built nothing runs; codespace doctor says why.`,
		Example: `  codespace doctor                      can this machine build the sandbox?
  codespace run -- make test            one command in the current directory
  codespace mcp --workspace ~/project   serve one directory to an agent`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
	}
	root.AddGroup(&cobra.Group{ID: groupRun, Title: "Running commands"}, &cobra.Group{ID: groupLook, Title: "Looking first"})
	root.CompletionOptions.DisableDefaultCmd = true // completionCommand is ours
	root.SetHelpFunc(showHelp)
	root.SetHelpCommand(helpCommand())
	root.SetVersionTemplate("codespace {{.Version}}\n")
	root.AddCommand(mcpCommand(), runCommand(), doctorCommand(), configCommand(), completionCommand(), versionCommand())
	return root
}

// The groups of commands in the overview; a command without one stands last.
const (
	groupRun  = "run"
	groupLook = "look"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Long:    "Print codespace, a space, and the version of this build.",
		Example: "  codespace version",
		Run:     func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "codespace", version) },
	}
}
