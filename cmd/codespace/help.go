package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// sectionKey annotates a command with the headings of its flags in help: lines of
// a title and the flags under it, separated by tabs.
const sectionKey = "codespace_sections"

// section puts flags under a heading. Headings come in the order in which they
// are first used; flags without one stand last, under "Flags".
func section(cmd *cobra.Command, title string, flags ...string) {
	all := sections(cmd)
	i := slices.IndexFunc(all, func(line []string) bool { return line[0] == title })
	if i < 0 {
		all, i = append(all, []string{title}), len(all)
	}
	all[i] = append(all[i], flags...)
	var lines []string
	for _, line := range all {
		lines = append(lines, strings.Join(line, "\t"))
	}
	cmd.Annotations = map[string]string{sectionKey: strings.Join(lines, "\n")}
}

func sections(cmd *cobra.Command) [][]string {
	var all [][]string
	for line := range strings.Lines(cmd.Annotations[sectionKey]) {
		all = append(all, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return all
}

// showHelp lays out a command's help like a manual page: what it is, how it is
// called, what it does, its commands or flags, examples.
func showHelp(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	fmt.Fprintf(w, "%s: %s\n\nUsage\n", cmd.CommandPath(), cmd.Short)
	if cmd.Runnable() {
		fmt.Fprintln(w, " ", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintln(w, " ", cmd.CommandPath(), "COMMAND [flags]")
	}
	if long := cmp.Or(cmd.Long, cmd.Short); long != "" {
		fmt.Fprintf(w, "\n%s\n", long)
	}
	showCommands(w, cmd)
	showFlags(w, cmd)
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n%s COMMAND --help says more about a command.\n", cmd.CommandPath())
	}
}

func showCommands(w io.Writer, cmd *cobra.Command) {
	groups := append(slices.Clone(cmd.Groups()), &cobra.Group{Title: "Commands"})
	if len(groups) > 1 {
		groups[len(groups)-1].Title = "Other"
	}
	for _, g := range groups {
		var lines []string
		for _, sub := range cmd.Commands() {
			if sub.GroupID == g.ID && (sub.IsAvailableCommand() || sub.Name() == "help") {
				lines = append(lines, fmt.Sprintf("  %-12s %s\n", sub.Name(), sub.Short))
			}
		}
		if len(lines) > 0 {
			fmt.Fprintf(w, "\n%s\n%s", g.Title, strings.Join(lines, ""))
		}
	}
}

func showFlags(w io.Writer, cmd *cobra.Command) {
	for _, line := range sections(cmd) {
		set := (&cobra.Command{}).Flags()
		set.SortFlags = false
		for _, name := range line[1:] {
			f := cmd.Flags().Lookup(name)
			set.AddFlag(f)
			defer func() { f.Hidden = false }()
		}
		fmt.Fprintf(w, "\n%s\n%s", line[0], set.FlagUsagesWrapped(helpWidth))
		for _, name := range line[1:] {
			cmd.Flags().Lookup(name).Hidden = true // until all are shown
		}
	}
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(w, "\nFlags\n%s", cmd.LocalFlags().FlagUsagesWrapped(helpWidth))
	}
}

const helpWidth = 100

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", DisableFlagsInUseLine: true, Short: "Show this overview, or the help of a command",
		Long:    "Show the overview of all commands, or the help of one.",
		Example: "  codespace help run",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return fmt.Errorf("cannot show help: there is no command %q", strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
	}
}
