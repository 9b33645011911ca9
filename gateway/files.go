package gateway

import (
	"context"

	"codespace/policy"
	"codespace/runner"
	"codespace/runner/files"
	"codespace/runner/wire"
)

// The line of a file: policy, runner. It needs no lease: what is read is what is
// there, and its version says which.

// ReadFile reads a part of a file. Workspace and path come with the request, the
// policy from the registry.
func (g *Gateway) ReadFile(ctx context.Context, p Principal, req files.ReadRequest) (files.ReadResult, error) {
	client, digest, err := g.reader(ctx, p, req.Workspace)
	if err != nil {
		return files.ReadResult{}, err
	}
	req.Digest = digest
	return client.ReadFile(ctx, req)
}

// Find finds paths, a page at a time.
func (g *Gateway) Find(ctx context.Context, p Principal, req files.FindRequest) (files.FindResult, error) {
	client, digest, err := g.reader(ctx, p, req.Workspace)
	if err != nil {
		return files.FindResult{}, err
	}
	req.Digest = digest
	return client.Find(ctx, req)
}

// Versions looks at paths, in their order.
func (g *Gateway) Versions(ctx context.Context, p Principal, req files.VersionsRequest) ([]files.Version, error) {
	client, digest, err := g.reader(ctx, p, req.Workspace)
	if err != nil {
		return nil, err
	}
	req.Digest = digest
	return client.Versions(ctx, req)
}

// reader decides that p may read a workspace's files, and is who can.
func (g *Gateway) reader(ctx context.Context, p Principal, workspaceID string) (*wire.Client, string, error) {
	workspace, err := g.workspace(p, workspaceID)
	if err != nil {
		return nil, "", err
	}
	grant, err := policy.Decide(workspace, policy.Action{Kind: policy.ReadFiles})
	if err != nil {
		return nil, "", fault(err, runner.Unauthorized)
	}
	child, err := g.runner(ctx)
	if err != nil {
		return nil, "", err
	}
	return child.Client, grant.Digest, nil
}
