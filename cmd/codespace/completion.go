package main

import "github.com/spf13/cobra"

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:                   "completion bash|zsh|fish",
		DisableFlagsInUseLine: true,
		Short:                 "Print a completion script for a shell",
		Long: `Print a script that completes commands, flags and file names of codespace in a
shell. Load it once, or from the shell's start-up files.`,
		Example: `  source <(codespace completion bash)
  codespace completion zsh > "${fpath[1]}/_codespace"
  codespace completion fish > ~/.config/fish/completions/codespace.fish`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			}
			return root.GenFishCompletion(out, true)
		},
	}
}
