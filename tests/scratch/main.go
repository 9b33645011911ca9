package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"codespace/policy"
	"codespace/sandbox"

	"golang.org/x/sys/unix"
)

func must(err error) {
	if err != nil {
		fmt.Println("ERR", err)
		os.Exit(1)
	}
}

func main() {
	helper, ws := os.Args[1], os.Args[2]
	a, b, err := sandbox.Pair()
	must(err)
	inst, err := os.MkdirTemp("/tmp", "inst")
	must(err)
	os.Chmod(inst, 0o711)
	os.Mkdir(inst+"/stage", 0o711)
	cmd := exec.Command(helper, "serve", inst+"/stage")
	cmd.ExtraFiles = []*os.File{b}
	cmd.Stderr = os.Stderr
	must(cmd.Start())
	b.Close()
	h, err := sandbox.NewHelper(a)
	must(err)
	var st unix.Stat_t
	must(unix.Stat(ws, &st))
	who := sandbox.Identity{HostUID: -1, HostGID: -1, DiskUID: int(st.Uid), DiskGID: int(st.Gid), StartingUID: sandbox.StartingUID()}
	if sandbox.HostRoot() {
		who.HostUID, who.HostGID = 1900000001, 1900000001
	}
	w := policy.Workspace{ID: "ws", Root: ws, Access: policy.AccessWrite, Limits: policy.Limits{Wall: time.Minute, Memory: 1 << 30, PIDs: 512, OpenFiles: 1024}}
	p := sandbox.NewPlan(policy.Grant{Workspace: w}, "test-1", sandbox.Root{Path: ws, Device: st.Dev, Inode: st.Ino}, who, "/none")
	t := time.Now()
	r, err := h.Prepare(context.Background(), p)
	fmt.Println("prepare", time.Since(t), r, err)
	if f, ok := err.(*sandbox.Failure); ok {
		fmt.Println(sandbox.Diagnose(f))
	}
	must(err)
	for i := 0; i < 5; i++ {
		t = time.Now()
		c, err := h.Cell(context.Background(), "test-1", true)
		must(err)
		t1 := time.Since(t)
		var pr, pw [2]int
		must(unix.Pipe2(pr[:], unix.O_CLOEXEC))
		must(unix.Pipe2(pw[:], unix.O_CLOEXEC))
		out := os.NewFile(uintptr(pw[1]), "w")
		err = c.Launch(sandbox.Launch{Argv: os.Args[3:], Env: sandbox.Environment(w), Cwd: ws, Files: [3]*os.File{os.NewFile(uintptr(pr[0]), "r"), out, out}})
		t2 := time.Since(t)
		out.Close()
		if err != nil {
			fmt.Println("launch:", err)
			c.Close()
			continue
		}
		bb, _ := io.ReadAll(os.NewFile(uintptr(pw[0]), "r"))
		t3 := time.Since(t)
		if i == 4 {
			fmt.Printf("%s", bb)
		}
		for {
			e, err := c.Next()
			if err != nil {
				if i == 4 {
					fmt.Println(err)
				}
				break
			}
			if i == 4 {
				fmt.Printf("%+v exit=%d %v\n", e, e.Status.ExitStatus(), c.Leaf.Spent())
			}
		}
		c.Gone()
		t4 := time.Since(t)
		c.Close()
		fmt.Println("cell", t1, "started", t2-t1, "eof", t3-t2, "gone", t4-t3, "closed", time.Since(t)-t4)
	}
	t = time.Now()
	fmt.Println("release", h.Release(context.Background(), "test-1"), time.Since(t))
	h.Close()
	fmt.Println(cmd.Wait())
}
