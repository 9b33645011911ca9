package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// patched is an answer about a patch, of both tools.
type patched struct {
	Status    string `json:"status"`
	Operation string `json:"operation_id"`
	Replayed  bool   `json:"replayed"`
	Finished  string `json:"finished_at"`
	Changes   []struct {
		Path string `json:"path"`
		Kind string `json:"kind"`
		From string `json:"from"`
	} `json:"changes"`
	Handoff []struct {
		Path   string `json:"path"`
		Reason string `json:"reason"`
	} `json:"handoff"`
}

const (
	leapPatch = `*** Begin Patch
*** Update File: c/leap.c
+/* The calendar of 1582. */
*** Add File: c/README
+leap.c knows the calendar.
*** Update File: lines.py
*** Move to: tools/lines.py
*** End Patch`
	hookPatch = `*** Begin Patch
*** Add File: .git/hooks/pre-commit
+#!/bin/sh
*** End Patch`
)

// look finds and reads files.
func (d *demo) look(ctx context.Context) (said, how string, wrong error) {
	s, err := d.session(ctx, timeLimit)
	if err != nil {
		return d.serverLog(), "no server", err
	}
	d.note(`find "**/*.c"`)
	found, err := call[struct{ Paths []string }](ctx, s, "find", map[string]any{"workspace_id": s.workspace, "glob": "**/*.c"})
	if err != nil {
		return "", "not found", err
	}
	d.note("read c/leap.c, its first line")
	file, err := call[struct{ Content, Version string }](ctx, s, "read", map[string]any{"workspace_id": s.workspace, "path": "c/leap.c", "start_line": 1, "line_count": 1})
	if err != nil {
		return "", "not read", err
	}
	said = strings.Join(found.Paths, "\n") + "\n" + file.Content
	if !strings.Contains(said, "c/leap.c") || !strings.Contains(file.Content, "int leap(int year)") {
		wrong = errors.New("c/leap.c was to be found and read")
	}
	return said, file.Version, wrong
}

// change checks a patch, applies it, sends it again and asks for it.
func (d *demo) change(ctx context.Context) (said, how string, wrong error) {
	s, err := d.session(ctx, timeLimit)
	if err != nil {
		return d.serverLog(), "no server", err
	}
	ask := func(note, tool string, want string, more map[string]any) patched {
		d.note(note)
		arguments := map[string]any{"workspace_id": s.workspace}
		for key, value := range more {
			arguments[key] = value
		}
		p, err := call[patched](ctx, s, tool, arguments)
		wrong = errors.Join(wrong, err)
		said += p.String() + "\n"
		if got := fmt.Sprintf("%s %v", p.Status, p.Replayed); err == nil && got != want {
			wrong = errors.Join(wrong, fmt.Errorf("it was to be %s, not %s", want, got))
		}
		return p
	}
	ask("apply_patch, check_only", "apply_patch", "checked false", map[string]any{"patch": leapPatch, "check_only": true})
	if _, err := os.Stat(filepath.Join(d.project(), "c/README")); err == nil {
		wrong = errors.Join(wrong, errors.New("a patch that was only checked has written a file"))
	}
	keyed := map[string]any{"patch": leapPatch, "operation_key": "demo"}
	ask("apply_patch, operation_key demo", "apply_patch", "applied false", keyed)
	ask("apply_patch, the same again", "apply_patch", "applied true", keyed)
	last := ask("operation_status of the key", "operation_status", "applied false", map[string]any{"operation_key": "demo"})
	d.note("apply_patch, of .git/hooks/pre-commit")
	_, err = call[patched](ctx, s, "apply_patch", map[string]any{"workspace_id": s.workspace, "patch": hookPatch})
	if err == nil || !strings.Contains(err.Error(), "PATH_PROTECTED") {
		return said, "not refused", errors.Join(wrong, fmt.Errorf("a hook was to be refused: %w", err))
	}
	return said + err.Error(), last.Operation + " finished at " + last.Finished, wrong
}

func (p patched) String() string {
	out := p.Status
	if p.Replayed {
		out += ", as recorded before"
	}
	for _, c := range p.Changes {
		out += fmt.Sprintf("; %s %s", c.Kind, c.Path)
		if c.From != "" {
			out += " from " + c.From
		}
	}
	for _, h := range p.Handoff {
		out += fmt.Sprintf("; handoff %s (%s)", h.Path, h.Reason)
	}
	return out
}
