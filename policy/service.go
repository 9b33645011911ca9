package policy

import (
	"fmt"
	"net/netip"
	"path/filepath"
)

// State is where the daemon keeps its ledger, keys and locks.
type State struct {
	Dir string // canonical absolute path; need not exist yet
}

// Listen is what the daemon answers on. An empty field is a door that stays shut.
type Listen struct {
	Socket   string // MCP: absolute path of a Unix socket
	HTTP     string // MCP: loopback address and port
	Operator string // operator verbs: absolute path of a Unix socket
}

// Identity is the range of host user ids from which "mapped" workspaces take
// theirs: UIDBase up to but not including UIDBase+UIDCount.
type Identity struct {
	UIDBase  uint32
	UIDCount uint32
}

// The default range lies above every range that adduser, systemd and container
// engines hand out.
var defaultIdentity = Identity{UIDBase: 1_900_000_000, UIDCount: 65536}

const (
	firstUID = 65536   // below lie the accounts of the host
	lastUID  = 1 << 31 // exclusive; from here on some tools take ids as negative
)

// maxSocketBytes is what sun_path of unix(7) holds, less the NUL.
const maxSocketBytes = 107

const (
	moveState  = "move state.dir, or the workspace or mount"
	moveSocket = "give the socket a directory of its own, or move the workspace or mount"
)

// service reads what concerns the daemon as a whole: [state], [listen] and
// [identity]. What it finds becomes ground that no workspace may touch.
func (l *loader) service() {
	root := l.doc.root()
	state := root.get("state")
	state.table("dir")
	var dir location
	if require(state.get("dir"), rule[string, location]{"an absolute path of a directory other than /", stateDir}, &dir) {
		l.registry.State.Dir = dir.path
		l.ground.refuse([]area{{location: dir, what: "state.dir", next: moveState, deep: true}})
	}
	listen := root.get("listen")
	listen.table("socket", "http", "operator")
	l.registry.Listen.Socket = l.socket(listen.get("socket"), "")
	l.registry.Listen.Operator = l.socket(listen.get("operator"), l.registry.Listen.Socket)
	take(listen.get("http"), loopback, &l.registry.Listen.HTTP)
	l.registry.Identity = identity(root.get("identity"))
}

func stateDir(written string) (location, *flaw) {
	at, f := prospect(written)
	if f != nil {
		return location{}, f
	}
	if at.path == "/" || at.found && !at.self().IsDir() {
		return location{}, &flaw{next: "name a directory such as /var/lib/codespace"}
	}
	return at, nil
}

// socket reads the path of a Unix socket other than taken.
func (l *loader) socket(s setting, taken string) string {
	allowed := fmt.Sprintf("an absolute path of at most %d bytes, another one for each socket", maxSocketBytes)
	var at location
	if !take(s, rule[string, location]{allowed, socketAt}, &at) {
		return ""
	}
	if at.path == taken {
		s.reject(&flaw{allowed: allowed, next: "choose another name"})
		return ""
	}
	dir, f := prospect(filepath.Dir(at.path))
	if f != nil {
		s.reject(f)
		return ""
	}
	l.ground.refuse([]area{{location: dir, what: "the directory of " + s.path, next: moveSocket, deep: true}})
	return at.path
}

func socketAt(written string) (location, *flaw) {
	dir, f := prospect(filepath.Dir(written))
	if f != nil {
		return location{}, f
	}
	at := dir.beneath([]string{filepath.Base(written)})
	if len(at.path) > maxSocketBytes {
		return location{}, &flaw{next: "shorten the path"}
	}
	if filepath.Clean(written) == "/" {
		return location{}, &flaw{next: "name a file such as /run/codespace/mcp.sock"}
	}
	return at, nil
}

// loopback is the rule for the address of the HTTP door.
var loopback = rule[string, string]{
	`a loopback address and a port, such as "127.0.0.1:8787" or "[::1]:8787"`,
	func(written string) (string, *flaw) {
		at, err := netip.ParseAddrPort(written)
		if err != nil || !at.Addr().IsLoopback() {
			return "", &flaw{next: "listen on loopback; others reach it through a proxy of yours that speaks TLS"}
		}
		return at.String(), nil
	},
}

func identity(s setting) Identity {
	result := defaultIdentity
	s.table("uid_base", "uid_count")
	base, number := int64(result.UIDBase), int64(result.UIDCount)
	take(s.get("uid_base"), counts.within(firstUID, lastUID-1), &base)
	take(s.get("uid_count"), counts.within(1, lastUID-firstUID), &number)
	if base+number >= lastUID {
		s.reject(&flaw{
			found:   fmt.Sprintf("a range that ends at %d", base+number),
			allowed: fmt.Sprintf("uid_base + uid_count below %d", lastUID),
			next:    "lower one of the two",
		})
		return result
	}
	return Identity{UIDBase: uint32(base), UIDCount: uint32(number)}
}
