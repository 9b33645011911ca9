package seccomp

import "slices"

// Action is what a rule answers.
type Action int

const (
	Allow  Action = iota // the kernel decides
	Deny                 // EPERM: a known call, or a known value of one, refused
	Absent               // ENOSYS: the default, spoken out where a library relies on it
)

func (a Action) String() string {
	return [...]string{"allow", "EPERM", "ENOSYS"}[a]
}

// Match holds when argument Arg (0 to 5), masked, equals Value. Both are 32 bits
// wide, so that no rule can depend on bits the kernel ignores.
type Match struct {
	Arg         uint
	Mask, Value uint32
}

// Rule is one row of the profile. Several rules may name one call; those with
// Action Deny win. A call none of whose rules matches answers ENOSYS.
type Rule struct {
	Name   string
	Group  string
	Action Action
	Reason string
	When   []Match // all must hold; none: always
	Number uint    // x86-64 number of a call that some libseccomp 2.5 cannot name, else 0
}

// Rules is the whole profile. With debug, commands may trace one another.
func Rules(debug bool) []Rule {
	return slices.Concat(files, names, memory, processes, scheduling, signals, identity, clocks,
		waiting, network, ipc, filtered, refused, absent, refusedValues(), tracing(debug))
}

// call is a row of a table of calls that are allowed, or refused, whole.
type call struct {
	name, reason string
}

func group(name string, action Action, calls []call, more ...Rule) []Rule {
	var rules []Rule
	for _, c := range calls {
		rules = append(rules, Rule{Name: c.name, Group: name, Action: action, Reason: c.reason})
	}
	return append(rules, more...)
}

// is matches one argument against one value, all 32 bits of it.
func is(arg uint, value uint32) Match {
	return Match{Arg: arg, Mask: 0xffffffff, Value: value}
}
