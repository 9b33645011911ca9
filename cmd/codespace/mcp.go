package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"codespace/gateway"
	"codespace/gateway/mcpserver"

	"github.com/spf13/cobra"
)

func mcpCommand() *cobra.Command {
	var flags mcpFlags
	cmd := &cobra.Command{
		Use:     "mcp [-w DIR | --config FILE] [flags]",
		GroupID: groupRun,
		Short:   "Serve MCP on standard input and output",
		Long: `Serve MCP on standard input and output, everything embedded: no daemon. An MCP
client starts this command; several at once are normal.

With --workspace one directory is served, with the profile workspace-write and no
network. With --config the workspaces of a configuration file are served; its
state directory then belongs to this process alone. At the end of standard input
every command is ended and codespace exits 0.`,
		Example: `  codespace mcp --workspace ~/project
  codespace mcp --workspace . --mount ~/.nvm --env PATH
  codespace mcp --config /etc/codespace.toml

  { "mcpServers": { "codespace": { "command": "/path/to/codespace",
    "args": ["mcp", "--workspace", "/path/to/project"] } } }`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serveMCP(cmd, &flags) },
	}
	flags.register(cmd)
	cmd.Flags().Var(&single{value: text{&flags.config, "FILE"}}, "config", "serve the workspaces of this configuration `FILE`")
	cmd.MarkFlagFilename("config", "toml")
	section(cmd, "Workspace", "config")
	return cmd
}

func serveMCP(cmd *cobra.Command, flags *mcpFlags) error {
	signal.Ignore(syscall.SIGPIPE) // a client that is gone is an error of a write, not our end
	settings, err := flags.settings(cmd)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	v, err := open(settings, log)
	if err != nil {
		return err
	}
	defer v.close()
	ctx, stop := signal.NotifyContext(context.Background(), heeded(syscall.SIGTERM)...)
	defer stop()
	if flags.config == "" && !cmd.Flags().Changed("workspace") {
		log.Info("serving the current directory; --workspace names another", "workspace", settings.Workspace)
	}
	if flags.config == "" && !flags.strict {
		log.Info("enforcement is best-effort: a limit this host cannot enforce is named in workspace_info; --strict refuses instead")
	}
	v.settle(ctx, log)
	return mcpserver.New(v.Gateway, log, version).ServeLines(ctx, os.Stdin, os.Stdout, gateway.Principal{Name: "stdio"})
}
