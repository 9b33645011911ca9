// Command codespace-helper builds sandboxes for codespace-runner, which starts
// it with one end of the preparation protocol as descriptor 3 and the gateway's
// lifeline as descriptor 4. It is not meant to be started by hand. Its other roles ("factory", "hold", "init") run before
// this main does: see helper/cell and helper/container.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"codespace/helper/seccomp"
	"codespace/sandbox"
)

func main() {
	if len(os.Args) != 3 || os.Args[1] != "serve" {
		fmt.Fprintln(os.Stderr, "codespace-helper: started by codespace-runner only; use codespace")
		os.Exit(2)
	}
	b := &builder{stage: os.Args[2], lifeline: os.NewFile(4, "lifeline"), boxes: map[string]*box{}}
	err := sandbox.Serve(os.NewFile(3, "preparation"), sandbox.Builder{Prepare: b.prepare, Cell: b.cell, Release: b.release, PatchFilter: seccomp.CompilePatch})
	b.close()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) { // the runner is gone
		fmt.Fprintln(os.Stderr, "codespace-helper:", err)
		os.Exit(1)
	}
}
