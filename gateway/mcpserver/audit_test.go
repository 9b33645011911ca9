package mcpserver_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"codespace/gateway/mcpserver"
	"codespace/runner"
)

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func TestAuditLine(t *testing.T) {
	var log strings.Builder
	s := mcpserver.NewBare(textLog(&log))
	s.Plant("ok", func(context.Context, string) (string, error) { return "output-value", nil })
	s.Plant("busy", func(context.Context, string) (string, error) {
		return "", &runner.Fault{Code: runner.WorkspaceBusy, Message: "busy"}
	})
	s.Plant("broken", func(context.Context, string) (string, error) { return "", errors.New("cannot open /host/secret") })
	got := script(t, s, opening+
		calling(1, "ok", `{"text":"argument-value"}`)+
		calling(2, "busy", `{}`)+
		calling(3, "broken", `{}`)+
		calling(4, "ok", `{"x":1}`)+
		calling(5, "no\nsuch\x1b[31m"+strings.Repeat("x", 500), `{}`))
	for _, want := range []string{"tool=ok outcome=ok", "tool=busy outcome=WORKSPACE_BUSY", "tool=broken outcome=INTERNAL",
		"tool=ok outcome=INVALID_ARGUMENT", `tool="no\nsuch\x1b[31mxx`, "outcome=PROTOCOL", "principal=test", "took="} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in\n%s", want, log.String())
		}
	}
	for _, secret := range []string{"argument-value", "output-value", strings.Repeat("x", 100)} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%q is in\n%s", secret, log.String())
		}
	}
	if n := strings.Count(log.String(), "msg=call"); n != 5 {
		t.Errorf("%d lines for 5 calls", n)
	}
	if r := string(got["3"].Result); strings.Contains(r, "/host") || !strings.Contains(log.String(), "/host/secret") {
		t.Errorf("a host path left, or is not logged: %s", r)
	}
}
