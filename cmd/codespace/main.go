// Command codespace runs commands in sandboxed workspaces: for agents, over MCP
// (codespace mcp), and for CI and people, one at a time (codespace run).
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

var version = "unversioned"

// status is an error that is only an exit status: everything has been said.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

const (
	exitFailure = 1   // of every command but run
	exitTimeout = 124 // run: the time limit ended the command
	exitSandbox = 125 // run: usage, or no sandbox; nothing ran
	exitNoExec  = 126 // run: found and not executable
	exitNoEntry = 127 // run: not found
	exitSignal  = 128 // run: plus the signal
)

func main() {
	root := &cobra.Command{
		Use:           "codespace",
		Short:         "Run commands in sandboxed workspaces",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(mcpCommand(), runCommand(), versionCommand())
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

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "codespace", version) },
	}
}
