package doctor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codespace/tests/need"
)

// layerNames are the layers in the order in which they are told.
var layerNames = []string{"user namespaces", "namespaces", "mount API", "proc", "identity", "id-mapping", "capabilities", "seccomp", "openat2", "landlock",
	"cgroup memory", "cgroup pids", "cgroup kill", "cgroup cpu", "rlimits"}

func TestGoodHostAsRoot(t *testing.T) { goodHost(t, newPlace(t, asRoot)) }

func TestGoodHostAsPlainUser(t *testing.T) { goodHost(t, newPlace(t, asPlain)) }

func goodHost(t *testing.T, p *place) {
	d := p.diagnose(t, p.as(codespace("doctor", "--json")...))
	if !d.CanRun || !d.Proof.Ran || d.Proof.Error != nil || d.Strength == "none" || d.Schema != 1 {
		t.Fatalf("commands cannot run here: %+v", d.Proof)
	}
	var names []string
	for _, l := range d.Layers {
		names = append(names, l.Name)
		wantFinding(t, l)
	}
	if !slices.Equal(names, layerNames) {
		t.Errorf("layers are %q, want %q", names, layerNames)
	}
	for _, c := range d.Circumstances {
		if c.State == "in the way" {
			t.Errorf("%q is in the way of commands that can run", c.Name)
		}
	}
	wantReceipt(t, d)
	wantNothingLeft(t, p)
}

func wantFinding(t *testing.T, l finding) {
	t.Helper()
	switch {
	case !slices.Contains([]string{"available", "weaker", "missing", "unused"}, l.State) || l.Strength == "" || l.Show == "":
		t.Errorf("layer %+v is not complete", l)
	case (l.State == "weaker" || l.State == "missing") && (l.Knob == "" || l.Fix == ""):
		t.Errorf("layer %+v does not say what is in the way and how to fix it", l)
	case (l.State == "available" || l.State == "unused") && l.Knob != "":
		t.Errorf("layer %+v is there and something is in the way", l)
	}
}

// wantReceipt wants what the survey says and what the kernel showed to agree.
func wantReceipt(t *testing.T, d diagnosis) {
	t.Helper()
	if !strings.HasPrefix(d.Proof.Digest, "sha256:") || d.Proof.Enforcement != "best-effort" {
		t.Errorf("proof %+v has no receipt", d.Proof)
	}
	has := func(layer string) bool { return slices.Contains(d.Proof.Receipt, layer) }
	available := func(layer string) bool { return find(d.Layers, layer).State == "available" }
	for layer, shown := range map[string]string{"cgroup memory": "cgroup: memory limit", "identity": "identity: host uid of its own, id-mapped workspace"} {
		if available(layer) != has(shown) {
			t.Errorf("layer %+v, but the receipt is %q", find(d.Layers, layer), d.Proof.Receipt)
		}
	}
	if !has("cgroup: pids limit") && !has("pids: RLIMIT_NPROC of its own user namespace") {
		t.Errorf("processes are not limited: %q", d.Proof.Receipt)
	}
}

// wantNothingLeft: doctor's own workspace and state are gone, and the user's state
// was not touched.
func wantNothingLeft(t *testing.T, p *place) {
	t.Helper()
	for _, dir := range []string{"tmp", "state", "ws", "run/codespace"} {
		entries, err := os.ReadDir(p.file(dir))
		if len(entries) > 0 || err != nil && !os.IsNotExist(err) {
			t.Errorf("left in %s: %v %v", dir, entries, err)
		}
	}
}

func TestTextSaysItInOrder(t *testing.T) {
	p := newPlace(t, asPlain)
	r := p.do(t, p.as(codespace("doctor")...))
	want := []string{"Commands can run here", "LAYER", "user namespaces", "rlimits", "Proof: a sandbox was built", "namespaces: user mount pid net ipc uts cgroup", "Tools: everything on PATH"}
	at := 0
	for _, w := range want {
		i := strings.Index(r.stdout[at:], w)
		if i < 0 {
			t.Fatalf("%q is not where it belongs in:\n%s", w, r.stdout)
		}
		at += i
	}
	if r.code != 0 || r.stderr != "" {
		t.Errorf("exit status %d, stderr %q", r.code, r.stderr)
	}
}

func TestNoPlaceToTryInIsSaid(t *testing.T) {
	p := newPlace(t, asPlain)
	must(t, os.RemoveAll(p.file("tmp")))
	d := p.diagnose(t, p.as(codespace("doctor", "--json")...))
	if d.CanRun || d.Proof.Error == nil || !strings.Contains(d.Proof.Error.Message, "TMPDIR") || len(d.Layers) != len(layerNames) {
		t.Errorf("without TMPDIR: %+v", d.Proof.Error)
	}
}

// TestDocumentedJSON wants docs/doctor.md to name every field and every layer.
func TestDocumentedJSON(t *testing.T) {
	doc, err := os.ReadFile("../../docs/doctor.md")
	must(t, err)
	p := newPlace(t, asPlain)
	p.script(t, "home/bin/tool")
	p.path += ":" + p.file("home/bin")
	good := p.do(t, p.as(codespace("doctor", "--json")...))
	must(t, os.RemoveAll(p.file("tmp")))
	bad := p.do(t, p.as(codespace("doctor", "--json")...))
	names := map[string]bool{}
	for _, out := range []string{good.stdout, bad.stdout} {
		var v any
		must(t, json.Unmarshal([]byte(out), &v))
		keys(v, names)
	}
	for _, l := range layerNames {
		names[l] = true
	}
	for name := range names {
		if !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("docs/doctor.md does not name %s", name)
		}
	}
	if len(names) < 30 {
		t.Errorf("only %d names: %v", len(names), names)
	}
}

func keys(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			into[k] = true
			keys(inner, into)
		}
	case []any:
		for _, inner := range v {
			keys(inner, into)
		}
	}
}

func TestInterruptedLeavesNothing(t *testing.T) {
	p := newPlace(t, asPlain)
	// timeout(1) sends SIGINT while the sandbox is being built, or after: either way
	// nothing may be left.
	for _, after := range []string{"0.05", "0.1", "0.2", "0.4"} {
		r := p.do(t, p.as(append([]string{"timeout", "-s", "INT", after}, codespace("doctor", "--json")...)...))
		if r.code != 0 && r.code != 1 && r.code != 124 && r.code != 130 {
			t.Errorf("after %s s: exit status %d, stderr %q", after, r.code, r.stderr)
		}
		if left, _ := filepath.Glob(p.file("tmp/*")); len(left) > 0 {
			t.Errorf("after %s s: left %v", after, left)
		}
	}
}

// A user namespace cannot drop groups, and the kernel's view of a process names each:
// who is in many gets a sandbox all the same.
func TestUserInManyGroups(t *testing.T) {
	p := newPlace(t, asPlain)
	need.Root(t)
	var groups []string
	for i := range 2000 {
		groups = append(groups, strconv.Itoa(1_000_000_000+i))
	}
	id := strconv.Itoa(plainUID)
	argv := append([]string{"setpriv", "--reuid=" + id, "--regid=" + id, "--groups=" + strings.Join(groups, ","), "--"}, codespace("run", "--", "true")...)
	if r := p.do(t, argv); r.code != 0 {
		t.Errorf("exit status %d, stderr %q", r.code, r.stderr)
	}
}
