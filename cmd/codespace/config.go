package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"codespace/policy"

	"github.com/spf13/cobra"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", GroupID: groupLook, Short: "Check a configuration file",
		Long:    "Commands about configuration files. None of them needs a daemon.",
		Example: "  codespace config check /etc/codespace.toml",
	}
	cmd.AddCommand(configCheckCommand())
	return cmd
}

func configCheckCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:                   "check FILE | --config FILE",
		DisableFlagsInUseLine: true,
		Short:                 "Check a configuration file and list its workspaces",
		Long: `Read a configuration file as a daemon would: strictly, and with the paths in it
checked against the disk as it is now. Lists the workspaces and exits 0, or writes
every error as file:line:column to standard error and exits 1. Nothing is changed.`,
		Example: `  codespace config check /etc/codespace.toml`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (file == "") == (len(args) == 0) {
				return errors.New("cannot check: name one file; use codespace config check FILE")
			}
			return checkConfig(cmd.OutOrStdout(), strings.Join(append(args, file), ""))
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "the configuration `FILE`")
	cmd.MarkFlagFilename("config", "toml")
	return cmd
}

func checkConfig(w io.Writer, file string) error {
	r, err := policy.Load(file)
	if err != nil {
		// One error a line, each beginning with its place, as editors read them.
		fmt.Fprintln(os.Stderr, strings.TrimPrefix(err.Error(), "cannot load registry: "))
		return status(exitFailure)
	}
	ids := r.IDs()
	fmt.Fprintf(w, "ok: %s\n", count(len(ids), "workspace"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(ids) > 0 {
		fmt.Fprint(t, "\nID\tROOT\tPROFILE\tNETWORK\tENFORCEMENT\n")
	}
	for _, id := range ids {
		ws, _ := r.Workspace(id) // an id of IDs is always there
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", id, printable(ws.Root), ws.Profile, ws.Network, ws.Enforcement)
	}
	return t.Flush()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
