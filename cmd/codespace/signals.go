package main

import (
	"os"
	"os/signal"
	"syscall"
)

// heeded is others, and of hangup and interrupt those that we were not started to
// ignore: under nohup(1), or in the background of a shell without job control, they
// are not meant for us, and asking for one would undo that (os/signal, Notify). Such
// a shell ignores SIGQUIT too, but Go's runtime takes that before we can see it.
func heeded(others ...os.Signal) []os.Signal {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if !signal.Ignored(s) {
			others = append(others, s)
		}
	}
	return others
}
