package policy_test

import (
	"strings"
	"testing"
)

// refusal is a registry that Load must refuse where ▲ stands, saying each part.
type refusal struct {
	name  string
	text  string
	parts []string
}

// about makes a refusal of a key in [workspaces.site].
func about(name, line string, parts ...string) refusal {
	return refusal{name, minimal + line, parts}
}

// profiled makes a refusal of a key in [profiles.ci].
func profiled(name, line string, parts ...string) refusal {
	return refusal{name, minimal + "[profiles.ci]\nextends = \"read-only\"\n" + line, parts}
}

var refusals = []refusal{
	{"broken text", "[state]\ndir = ▲nowhere\n", []string{"cannot be read", "TOML"}},
	{"unterminated", "[state]\ndir = \"x▲\n", []string{"cannot be read"}},
	{"key twice", "[state]\ndir = \"/a\"\n▲dir = \"/b\"\n", []string{"dir is already defined", "written once"}},
	{"table twice", "[state]\ndir = \"/a\"\n[▲state]\n", []string{"already exists"}},
	{"number too large", minimal + "[identity]\nuid_base = ▲99999999999999999999", []string{"too large"}},
	{"too deep keys", "a.b.c.d.e.f.g.h.▲i = 1", []string{"8 levels"}},
	{"too deep values", "a = [[[[[[[[[1]]]]]]]]]", []string{"8 levels"}},

	{"unknown table", minimal + "[▲workspace.site]", []string{"an unknown key", "workspaces", "workspace:"}},
	{"other case", minimal + "[▲State]", []string{"State: ", "case counts"}},
	about("unknown key", "▲networks = \"enabled\"", "workspaces.site.networks", "network, egress"),
	about("key of a hostile name", "▲\"a\\u001b[31m\" = 1", `workspaces.site."a\x1b[31m"`),
	about("unknown limit", "limits = { ▲cpu = 1 }", "limits.cpu", "memory, pids"),
	about("enforcement elsewhere", "▲enforcement = \"strict\"", "workspaces.site.enforcement"),
	{"table of wrong kind", "state = ▲\"x\"", []string{`found "x"`, "a table"}},
	{"table missing", "▲", []string{"state.dir: found nothing", "add the key"}},
	{"key missing", "[▲state]", []string{"state.dir: found nothing"}},
	{"wrong kind", "[state]\ndir = ▲1", []string{"found the number 1", "absolute path"}},
	{"date", "[state]\ndir = ▲1979-05-27", []string{`found "1979-05-27"`}},
	{"fraction", "[state]\ndir = ▲1.5", []string{"found the number 1.5"}},

	{"state relative", "[state]\ndir = ▲\"state\"", []string{`found "state"`, "absolute"}},
	{"state empty", "[state]\ndir = ▲\"\"", []string{`found ""`, "absolute"}},
	{"state root", "[state]\ndir = ▲\"/\"", []string{`found "/"`}},
	{"state is a file", "[state]\ndir = ▲\"$DIR/tool\"", []string{"/tool\"", "directory"}},
	{"socket too long", minimal + "[listen]\nsocket = ▲\"/run/" + strings.Repeat("x", 103) + "\"", []string{"107 bytes"}},
	{"sockets alike", minimal + "[listen]\nsocket = \"$DIR/run/s\"\noperator = ▲\"$DIR/run/s\"", []string{"another one for each"}},
	{"socket relative", minimal + "[listen]\nsocket = ▲\"mcp.sock\"", []string{"absolute"}},
	{"http everywhere", minimal + "[listen]\nhttp = ▲\"0.0.0.0:80\"", []string{"loopback", "proxy"}},
	{"http by name", minimal + "[listen]\nhttp = ▲\"localhost:80\"", []string{"127.0.0.1:8787"}},
	{"http empty", minimal + "[listen]\nhttp = ▲\"\"", []string{`found ""`}},
	{"uid range of the host", minimal + "[identity]\nuid_base = ▲65535", []string{"from 65536 to"}},
	{"uid range beyond", minimal + "[▲identity]\nuid_base = 2147483647", []string{"below 2147483648"}},
	{"no uids", minimal + "[identity]\nuid_count = ▲0", []string{"from 1 to"}},

	{"environment of no kind", minimal + "[environments.▲box]", []string{"box.kind: found nothing", `"container"`}},
	{"environment of a strange kind", minimal + "[environments.box]\nkind = ▲\"vm\"", []string{`"host" or "container" or "remote"`}},
	{"host that is none", minimal + "[environments.host]\nkind = ▲\"container\"", []string{`allowed: "host"`}},
	{"environment setting that nothing enforces", minimal + "[environments.box]\nkind = \"container\"\n▲rootfs = \"/\"", []string{"unknown"}},
	{"environment name", minimal + "[environments.▲Box]\nkind = \"host\"", []string{"a name of 1 to 64"}},

	{"no extends", minimal + "[profiles.▲ci]", []string{"extends: found nothing", `"read-only" or "workspace-write"`}},
	{"extends another", minimal + "[profiles.a]\nextends = ▲\"b\"", []string{`"read-only" or "workspace-write"`}},
	{"built-in again", minimal + "[profiles.▲read-only]\nextends = \"workspace-write\"", []string{"built-in", "rename"}},
	profiled("nothing protected", "protected = ▲[]", "an empty list", "default list"),
	profiled("protected above", "protected = [\"a\", ▲\"../b\"]", `"../b"`, "relative to the workspace"),
	profiled("protected absolute", "protected_extra = [▲\"/etc\"]", "relative to the workspace"),
	profiled("protected empty", "protected_extra = [▲\"\"]", `found ""`),
	profiled("protected braces", "protected_extra = [▲\"a/{b,c}\"]", "one pattern for each"),
	profiled("protected any depth", "protected_extra = [▲\"**/a\"]", "one pattern for each"),
	profiled("protected bracket", "protected_extra = [▲\"[a\"]", "close the bracket"),
	profiled("protected bracket over a slash", "protected_extra = [▲\"a[b/c]\"]", "close the bracket"),
	profiled("protected string", "protected = ▲\".git\"", "an array"),
	profiled("devices", "devices = ▲[\"/dev/kvm\"]", "not available yet"),
	profiled("device", "devices = ▲\"/dev/kvm\"", "not available yet"),
	profiled("debug", "debug = ▲\"true\"", "true or false"),
	profiled("cache name", "caches = [\"npm\", ▲\"../x\"]", "a name of 1 to 64"),
	profiled("cache twice", "caches = [\"npm\", ▲\"npm\"]", "each cache once"),
	profiled("variable name", "environment = { ▲\"A-B\" = \"1\" }", "letters, digits"),
	profiled("variable fixed", "environment = { ▲HOME = \"/\" }", "HOME", "sandbox's own"),
	profiled("variable number", "environment = { CI = ▲1 }", "a string in quotes"),
	profiled("variable with NUL", "environment = { CI = ▲\"a\\u0000\" }", "without NUL"),
	profiled("variable too long", "environment = { CI = ▲\""+strings.Repeat("x", 32769)+"\" }", "at most 32768 bytes"),

	profiled("mount for writing", "mounts = [{ path = \"$DIR/sdk\", access = ▲\"write\" }]", "outside its workspace", `allowed: "read"`),
	profiled("mount access", "mounts = [{ path = \"$DIR/sdk\", access = ▲\"\" }]", `allowed: "read"`),
	profiled("mount of nothing", "mounts = [▲{}]", "path: found nothing"),
	profiled("mount missing", "mounts = [{ path = ▲\"$DIR/gone\" }]", "no such file", "create it"),
	profiled("mount relative", "mounts = [{ path = ▲\"sdk\" }]", "absolute"),
	profiled("mount key", "mounts = [{ path = \"$DIR/sdk\", ▲to = \"/x\" }]", "path, access"),
	profiled("mount of a string", "mounts = [▲\"$DIR/sdk\"]", "a table"),
	profiled("mount twice", "mounts = [{ path = \"$DIR/sdk\" }, { path = ▲\"$DIR/sdk/.\" }]", "mounted already"),
	profiled("mount of all", "mounts = [{ path = ▲\"/\" }]", "which is /"),
	profiled("mount of a kernel file system", "mounts = [{ path = ▲\"/proc/self/fd\" }]", "lies in /proc"),
	profiled("mount of a device", "mounts = [{ path = ▲\"/dev/null\" }]", "device"),
	profiled("mount of devices", "mounts = [{ path = ▲\"/dev/pts\" }]", "lies in /dev"),
	profiled("mount of all state", "mounts = [{ path = ▲\"$DIR\" }]", "contains", "state.dir"),
	profiled("mount of /run", "mounts = [{ path = ▲\"/run\" }]", "which is /run"),
	profiled("mount of /etc", "mounts = [{ path = ▲\"/etc\" }]", "accounts and keys", "beneath"),

	about("workspace id", "[workspaces.▲Big]", "a name of 1 to 64"),
	about("workspace id with a slash", "[workspaces.▲\"a/b\"]", "a name of 1 to 64"),
	{"no profile", "[state]\ndir = \"$DIR/state\"\n[workspaces.▲site]\nroot = \"$DIR/site\"", []string{"profile: found nothing", `"workspace-write"`}},
	{"no root", "[state]\ndir = \"$DIR/state\"\n[workspaces.▲site]\nprofile = \"read-only\"", []string{"root: found nothing"}},
	{"profile nobody wrote", "[workspaces.site]\nprofile = ▲\"ci\"", []string{`"read-only", "workspace-write"`, "add [profiles.ci]"}},
	about("environment nobody wrote", "environment = ▲\"box\"", `allowed: "host"`, "add [environments.box]"),
	about("environment empty", "environment = ▲\"\"", `allowed: "host"`),
	about("network enabled", "network = ▲\"enabled\"", "not available yet", `allowed: "restricted"`),
	about("network empty", "network = ▲\"\"", `found ""`, `allowed: "restricted"`),
	about("network null", "network = ▲\"null\"", `allowed: "restricted"`),
	about("network unknown", "network = ▲\"host\"", `allowed: "restricted"`),
	about("network false", "network = ▲false", "found false", `allowed: "restricted"`),
	about("network as a list", "network = ▲[]", "found an array"),
	about("egress", "[workspaces.site.▲egress]\nallow = []", "not available yet"),
	about("approvals confirm", "approvals = ▲\"confirm\"", "not available yet", `allowed: "off"`),
	about("approvals operator", "approvals = ▲\"operator\"", "not available yet", `allowed: "off"`),
	about("approvals empty", "approvals = ▲\"\"", `allowed: "off"`),
	about("identity", "identity = ▲\"root\"", `"mapped" or "owner"`),
	about("enforcement", "limits.enforcement = ▲\"none\"", `"strict" or "best-effort"`),
	about("limits of wrong kind", "limits = ▲1", "a table"),
}

func TestLoadRefuses(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			says(t, newHost(t).refuse(c.text), c.parts...)
		})
	}
}

func TestLoadReportsEveryFaultInTheOrderOfTheFile(t *testing.T) {
	h := newHost(t)
	text := h.refuse(minimal + "network = \"on\"\napprovals = \"on\"\n")
	if network, approvals := strings.Index(text, "site.network"), strings.Index(text, "site.approvals"); network < 0 || approvals < network {
		t.Errorf("got %s", text)
	}
	lines := minimal
	for i := range 30 {
		lines += "unknown" + strings.Repeat("x", i) + " = 1\n"
	}
	text = h.refuse(lines)
	if n := strings.Count(text, "found "); n != 20 {
		t.Errorf("got %d faults, want 20", n)
	}
	says(t, text, "and 10 more")
}
