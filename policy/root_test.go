package policy_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"codespace/tests/need"
)

// rooted is a registry whose only workspace has that root.
func rooted(root string) string {
	return "[state]\ndir = \"$DIR/state\"\n[listen]\nsocket = \"$DIR/run/s\"\n" +
		"[workspaces.site]\nprofile = \"read-only\"\nroot = ▲\"" + root + "\"\n"
}

func TestRootsThatHandOutTooMuchAreRefused(t *testing.T) {
	t.Setenv("HOME", "/srv")
	cases := map[string][]string{
		"":                {"absolute"},
		"site":            {"absolute"},
		"~/site":          {"absolute"},
		"$DIR/gone":       {"no such file or directory", "create it"},
		"$DIR/tool":       {"not a directory"},
		"$DIR/tool/x":     {"not a directory"},
		"$DIR/a\\u0000b":  {"without NUL"},
		"/":               {"which is /"},
		"//":              {"which is /"},
		"/../":            {"which is /"},
		"/tmp":            {"which is /tmp", "beneath"},
		"/run":            {"which is /run"},
		"/var":            {"which is /var"},
		"/home":           {"which is /home"},
		"/root":           {"which is /root", "home directory itself"},
		"/srv":            {"which is /srv", "home directory itself"},
		"/usr":            {"which is /usr", "/srv/NAME"},
		"/usr/share":      {"lies in /usr"},
		"/bin":            {"system directory"},
		"/lib":            {"system directory"},
		"/etc/":           {"which is /etc"},
		"/proc/self":      {"lies in /proc"},
		"/proc/self/root": {"which is /"},
		"/sys":            {"which is /sys"},
		"/dev":            {"which is /dev"},
		"$DIR":            {"contains $DIR/state"},
		"$DIR/state":      {"which is $DIR/state", "state.dir"},
		"$DIR/state/x":    {"lies in $DIR/state"},
		"$DIR/run":        {"which is $DIR/run", "listen.socket"},
		"$DIR/run/x":      {"lies in $DIR/run"},
		"$DIR/to-usr":     {"$DIR/to-usr", "lies in /usr"},
		"$DIR/dangling":   {"no such file"},
		"$DIR/loop":       {"too many links"},
	}
	h := newHost(t)
	h.must(os.MkdirAll(h.path("state/x"), 0o755))
	h.must(os.MkdirAll(h.path("run/x"), 0o755))
	h.must(os.Symlink("/usr/share", h.path("to-usr")))
	h.must(os.Symlink("gone", h.path("dangling")))
	h.must(os.Symlink("loop", h.path("loop")))
	for root, parts := range cases {
		t.Run(root, func(t *testing.T) {
			text := host{t, h.dir}.refuse(rooted(root))
			for _, part := range parts {
				says(t, text, strings.ReplaceAll(part, "$DIR", h.dir))
			}
		})
	}
}

func TestHomeOfAnAccountIsRefused(t *testing.T) {
	accounts, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	for line := range strings.Lines(string(accounts)) {
		home := strings.Split(line, ":")[5]
		if info, err := os.Stat(home); err != nil || !info.IsDir() || !strings.HasPrefix(home, "/home/") {
			continue
		}
		says(t, h.refuse(rooted(home)), "home directory itself")
	}
}

func TestDirectoryThatHoldsTheOperatorsHomeIsRefused(t *testing.T) {
	h := newHost(t)
	h.load(strings.Replace(rooted("$DIR/site"), "▲", "", 1))
	t.Setenv("HOME", h.path("site/src"))
	says(t, h.refuse(rooted("$DIR/site")), "contains "+h.path("site/src"))
}

func TestRootIsStoredCanonically(t *testing.T) {
	h := newHost(t)
	h.must(os.Symlink("site", h.path("link")))
	site, _ := h.load(strings.Replace(rooted("$DIR/link/../link/."), "▲", "", 1)).Workspace("site")
	equal(t, site.Root, h.path("site"))
}

func TestOverlappingRootsAreRefusedAtTheLaterOne(t *testing.T) {
	for _, other := range []string{"$DIR/site", "$DIR/site/src", "$DIR/link", "$DIR/link/src", "$DIR/x/../site"} {
		t.Run(filepath.Base(other), func(t *testing.T) {
			h := newHost(t)
			h.must(os.Symlink("site", h.path("link")))
			h.must(os.Mkdir(h.path("x"), 0o755))
			text := h.refuse(minimal + "[workspaces.a]\nprofile = \"read-only\"\nroot = ▲\"" + other + "\"")
			says(t, text, "workspaces.a.root", "overlaps", "of workspace site")
			text = h.refuse("[workspaces.a]\nprofile = \"read-only\"\nroot = \"" + other + "\"\n" +
				strings.Replace(minimal, `"$DIR/site"`, `▲"$DIR/site"`, 1))
			says(t, text, "workspaces.site.root", "overlaps", "of workspace a")
		})
	}
}

// TestSecondNameOfARootIsTheSameRoot gives directories a second name by bind
// mounts, in a mount namespace of this test's own thread.
func TestSecondNameOfARootIsTheSameRoot(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	err := syscall.Unshare(syscall.CLONE_NEWNS)
	if err == nil {
		err = syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	}
	need.Feature(t, "mount", err == nil, "it takes CAP_SYS_ADMIN")
	for bound, parts := range map[string][]string{
		"$DIR/site":  {"overlaps", "of workspace site"},
		"$DIR":       {"$DIR/state"},
		"$DIR/state": {"state.dir"},
		"$DIR/etc":   {"registry file"},
		"/etc":       {"system directory"},
	} {
		h := newHost(t)
		h.must(os.Mkdir(h.path("state"), 0o755))
		text := minimal + "[workspaces.a]\nprofile = \"read-only\"\nroot = ▲\"$DIR/other\""
		h.load(strings.Replace(text, "▲", "", 1))
		here := func(text string) string { return strings.ReplaceAll(text, "$DIR", h.dir) }
		h.must(syscall.Mount(here(bound), h.path("other"), "", syscall.MS_BIND, ""))
		refused := h.refuse(text)
		h.must(syscall.Unmount(h.path("other"), syscall.MNT_DETACH))
		for _, part := range parts {
			says(t, refused, here(part))
		}
	}
}

func TestNeighboursWithACommonPrefixDoNotOverlap(t *testing.T) {
	h := newHost(t)
	h.must(os.Mkdir(h.path("site-2"), 0o755))
	reg := h.load(minimal + "[workspaces.two]\nprofile = \"read-only\"\nroot = \"$DIR/site-2\"")
	equal(t, reg.IDs(), []string{"site", "two"})
}

func TestRegistryFileInsideAWorkspaceIsRefused(t *testing.T) {
	h := newHost(t)
	for _, root := range []string{"$DIR/etc", "$DIR/link"} {
		h.must(os.RemoveAll(h.path("link")))
		h.must(os.Symlink("etc", h.path("link")))
		says(t, h.refuse(rooted(root)), "holds this registry file", "move the file")
	}
}

func TestRootThatTheProfileMountsIsRefused(t *testing.T) {
	h := newHost(t)
	text := h.refuse("[profiles.ci]\nextends = \"workspace-write\"\nmounts = [{ path = \"$DIR/sdk\" }]\n" +
		"[workspaces.site]\nprofile = \"ci\"\nroot = ▲\"$DIR/sdk\"\n[state]\ndir = \"$DIR/state\"\n")
	says(t, text, "mounts read-only", "remove the mount")
}

func TestOwnerIdentityNeedsAnOrdinaryOwner(t *testing.T) {
	need.Root(t)
	h := newHost(t)
	says(t, h.refuse(minimal+"identity = ▲\"owner\""), "uid 0", "mapped")
	h.must(os.Chown(h.path("site"), 4321, 4321))
	site, _ := h.load(minimal + "identity = \"owner\"").Workspace("site")
	equal(t, site.Identity, "owner")
}
