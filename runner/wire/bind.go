package wire

import (
	"context"
	"fmt"
	"strings"

	"codespace/runner"
	"codespace/runner/files"
)

// work is a request bound to the method that answers it.
type work func(context.Context) (result any, chunk []byte, err error)

// bind checks a request to its last byte before any of it is carried out.
func bind(h Handler, m message) (work, error) {
	if m.Kind == kindExec {
		return bindExec(h, m)
	}
	if m.Kind == kindWrite && len(m.files) == 0 {
		return bindWrite(h, m)
	}
	switch m.Kind {
	case kindPlan:
		return bindPlan(h, m)
	case kindSettle:
		return bindSettle(h, m)
	}
	if len(m.body) > 0 || len(m.files) > 0 {
		return nil, fmt.Errorf("cannot accept %q with a body or descriptors", m.Kind)
	}
	switch m.Kind {
	case kindRead:
		return bindRead(h, m)
	case kindFile, kindFind, kindVersions:
		return bindFiles(h, m)
	}
	var t target
	if err := decode(m.Payload, &t); err != nil {
		return nil, err
	}
	return bindTarget(h, m.Kind, t)
}

func bindTarget(h Handler, k kind, t target) (work, error) {
	switch k {
	case kindStatus:
		return func(ctx context.Context) (any, []byte, error) {
			status, err := h.Status(ctx, t.ProcessID)
			return status, nil, err
		}, nil
	case kindTerminate:
		return func(ctx context.Context) (any, []byte, error) {
			return nil, nil, h.Terminate(ctx, t.ProcessID)
		}, nil
	case kindSignal:
		return func(ctx context.Context) (any, []byte, error) {
			return nil, nil, h.Signal(ctx, t.ProcessID, t.Signal)
		}, nil
	case kindResize:
		return func(ctx context.Context) (any, []byte, error) {
			return nil, nil, h.Resize(ctx, t.ProcessID, t.Rows, t.Cols)
		}, nil
	case kindList:
		return func(ctx context.Context) (any, []byte, error) {
			list, err := h.List(ctx, t.Processes)
			return list, nil, err
		}, nil
	case kindApply:
		return func(ctx context.Context) (any, []byte, error) {
			outcome, err := h.ApplyPatch(ctx, t.Plan)
			return outcome, nil, err
		}, nil
	case kindDrop:
		return func(ctx context.Context) (any, []byte, error) {
			return nil, nil, h.DropPlan(ctx, t.Plan)
		}, nil
	case kindSupport:
		return func(ctx context.Context) (any, []byte, error) {
			support, err := h.Support(ctx, t.Workspace)
			return support, nil, err
		}, nil
	}
	return nil, fmt.Errorf("cannot accept %q from the gateway", k)
}

func bindWrite(h Handler, m message) (work, error) {
	var req runner.WriteRequest
	if err := decode(m.Payload, &req); err != nil {
		return nil, err
	}
	req.Data = m.body
	return func(context.Context) (any, []byte, error) {
		result, err := h.Write(req)
		return result, nil, err
	}, nil
}

func bindExec(h Handler, m message) (work, error) {
	var req runner.ExecRequest
	if err := decode(m.Payload, &req); err != nil {
		return nil, err
	}
	argv, err := unpackArgv(m.body)
	if err != nil {
		return nil, err
	}
	if err := filesFor(req.Attached, len(m.files)); err != nil {
		return nil, err
	}
	req.Argv = argv
	return func(ctx context.Context) (any, []byte, error) {
		result, err := h.Exec(ctx, req, m.files)
		return result, nil, err
	}, nil
}

func bindRead(h Handler, m message) (work, error) {
	var req runner.ReadRequest
	if err := decode(m.Payload, &req); err != nil {
		return nil, err
	}
	req.MaxBytes = min(req.MaxBytes, MaxChunk)
	return func(ctx context.Context) (any, []byte, error) {
		result, err := h.Read(ctx, req)
		return result, result.Chunk, err
	}, nil
}

// bindFiles binds what is asked about files. Paths cross in the body, where they need
// not be UTF-8, each ended by a NUL.
func bindFiles(h Handler, m message) (work, error) {
	switch m.Kind {
	case kindFile:
		var req files.ReadRequest
		err := decode(m.Payload, &req)
		req.MaxBytes = min(req.MaxBytes, MaxChunk)
		return func(ctx context.Context) (any, []byte, error) {
			result, err := h.ReadFile(ctx, req)
			return result, result.Content, err
		}, err
	case kindFind:
		var req files.FindRequest
		err := decode(m.Payload, &req)
		return func(ctx context.Context) (any, []byte, error) {
			result, err := h.Find(ctx, req)
			return result, packPaths(result.Paths), err
		}, err
	}
	var req files.VersionsRequest
	err := decode(m.Payload, &req)
	return func(ctx context.Context) (any, []byte, error) {
		result, err := h.Versions(ctx, req)
		return result, nil, err
	}, err
}

// bindPlan binds the planning of a patch: its text is the body.
func bindPlan(h Handler, m message) (work, error) {
	var req files.PatchRequest
	if err := decode(m.Payload, &req); err != nil {
		return nil, err
	}
	if len(m.files) > 2 {
		return nil, fmt.Errorf("cannot plan with %d descriptors: at most 2 are wanted", len(m.files))
	}
	req.Patch = m.body
	return func(ctx context.Context) (any, []byte, error) {
		plan, err := h.PlanPatch(ctx, req, m.files)
		return plan, nil, err
	}, nil
}

func bindSettle(h Handler, m message) (work, error) {
	var req files.SettleRequest
	if err := decode(m.Payload, &req); err != nil {
		return nil, err
	}
	if len(m.files) > 1 || len(m.body) > 0 {
		return nil, fmt.Errorf("cannot settle with %d descriptors and a body of %d bytes", len(m.files), len(m.body))
	}
	return func(ctx context.Context) (any, []byte, error) {
		outcome, err := h.SettlePatch(ctx, req, m.files)
		return outcome, nil, err
	}, nil
}

func packPaths(paths []string) []byte {
	var b []byte
	for _, p := range paths {
		b = append(append(b, p...), 0)
	}
	return b
}

func unpackPaths(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}
