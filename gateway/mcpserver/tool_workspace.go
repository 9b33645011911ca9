package mcpserver

import (
	"context"
	"fmt"

	"codespace/gateway"
)

func workspaceInfo() tool {
	return tool{
		name:  "workspace_info",
		title: "Describe workspaces",
		description: "List the workspaces you may use or, with workspace_id, describe one: its profile, network, approvals " +
			"and what a command may do in it. A workspace_id stays valid as long as the operator keeps the workspace registered.",
		hints:  hints{readOnly: true, idempotent: true},
		input:  workspaceInput,
		output: workspaceOutput,
		run:    runWorkspaceInfo,
	}
}

const workspaceInput = `{"type":"object","additionalProperties":false,"properties":{
"workspace_id":{"type":"string","description":"The workspace to describe. Leave it out to list them all."}}}`

const workspaceOutput = `{"type":"object","properties":{
"workspaces":{"type":"array","description":"Without workspace_id: one object for each workspace."},
"truncated":{"type":"boolean","description":"True if the list is not complete."},
"workspaces_total":{"type":"integer"},
"workspace_id":{"type":"string"},
"profile":{"type":"string"},
"network":{"type":"string","description":"restricted (no way out) or enabled."},
"approvals":{"type":"string","description":"off, confirm or operator."},
"environment":{"type":"string"},
"execution":{"type":"object","description":"What is permitted and supported: files, process, tty, isolation in force, limits."}}}`

func runWorkspaceInfo(ctx context.Context, c *call) (reply, error) {
	if !c.arguments.has("workspace_id") {
		all, err := c.gateway.Workspaces(ctx, c.principal)
		return workspaceList(all), err
	}
	w, err := c.gateway.Workspace(ctx, c.principal, c.arguments.text("workspace_id"))
	return workspaceDetail(w), err
}

func workspaceDetail(w gateway.Workspace) reply {
	return reply{header: "workspace " + w.ID, value: w}
}

func workspaceList(all []gateway.Workspace) reply {
	short := make([]gateway.Workspace, len(all))
	for i, w := range all {
		w.Execution = nil
		short[i] = w
	}
	return longest(len(short), func(n int) reply {
		return reply{
			header: fmt.Sprintf("%d of %d workspaces", n, len(short)),
			value: struct {
				Workspaces []gateway.Workspace `json:"workspaces"`
				Truncated  bool                `json:"truncated"`
				Total      int                 `json:"workspaces_total"`
			}{short[:n], n < len(short), len(short)},
		}
	})
}
