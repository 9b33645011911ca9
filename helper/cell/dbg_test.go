package cell_test
import ("testing";"os/exec";"os";"codespace/sandbox/message";"codespace/helper/cell")
func TestDbg(t *testing.T){
	ours, theirs, _ := message.Pair()
	lifeline, hangup, _ := os.Pipe(); _ = hangup
	cmd := exec.Command("strace","-f","-o","/tmp/w-sbx/trace","unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "--ipc", "--uts", "--net", "/tmp/w-sbx/planted", "factory")
	os.MkdirAll("/tmp/w-sbx/logs",0o777)
	cmd.Env = []string{"ASAN_OPTIONS=log_path=/tmp/w-sbx/logs/asan"}
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{theirs, lifeline, lifeline}
	cmd.Start()
	f, err := cell.NewFactory(ours, rig{}.config("/"))
	if err != nil { t.Fatal(err) }
	n, err := f.Clone(true)
	if err != nil { t.Fatal(err) }
	t.Log(n.Finish())
	one := make([]byte,1)
	t.Log(n.Socket.Read(one))
}
