// Command codespace-patch plans and applies one patch for codespace-runner, which starts
// it with one end of a socket pair as descriptor 3. It is not meant to be started by hand.
package main

import (
	"fmt"
	"os"
	"syscall"

	"codespace/helper/patch"
	"codespace/runner/failpoint"
	"codespace/runner/patching"
)

var version = "unversioned"

func main() {
	if len(os.Args) != 2 || os.Args[1] != "serve" {
		fmt.Fprintln(os.Stderr, "codespace-patch", version+": started by codespace only; use codespace")
		os.Exit(2)
	}
	syscall.Umask(0o022)
	err := failpoint.Open()
	if err == nil {
		err = patch.Serve(patching.Inherited(3))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "codespace-patch:", err)
		os.Exit(1)
	}
}
