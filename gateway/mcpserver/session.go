package mcpserver

import (
	"context"

	"codespace/gateway"
)

// session is what one connection tells its requests. It travels in their
// context, since the SDK hands a handler nothing of the transport's.
type session struct {
	principal gateway.Principal
	// ended is done once no more requests will be read: whatever waits for
	// output answers with what is there.
	ended context.Context
}

type (
	sessionKey   struct{}
	principalKey struct{}
	recordKey    struct{}
)

func sessionOf(ctx context.Context) (session, bool) {
	s, ok := ctx.Value(sessionKey{}).(session)
	return s, ok
}

// waiting is ctx, ended also by the end of the connection's requests.
func waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	s, ok := sessionOf(ctx)
	ctx, cancel := context.WithCancel(ctx)
	if !ok {
		return ctx, cancel
	}
	stop := context.AfterFunc(s.ended, cancel)
	return ctx, func() { stop(); cancel() }
}

func principalOf(ctx context.Context) gateway.Principal {
	p, _ := ctx.Value(principalKey{}).(gateway.Principal)
	return p
}
