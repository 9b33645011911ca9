package seccomp

// tracing is what strace and gdb need: allowed with debug, else refused. Traced
// processes are the cell's own, under the same filter (ptrace cannot bypass it
// since Linux 4.8).
func tracing(debug bool) []Rule {
	action := Deny
	if debug {
		action = Allow
	}
	rules := group("tracing", action, []call{
		{"ptrace", "controls other processes: strace, gdb"},
		{"process_vm_readv", "reads other processes' memory: strace, gdb"},
		{"process_vm_writev", "writes other processes' memory: gdb"},
	})
	fixed := Match{0, addrNoRandomize | asksOnly, addrNoRandomize}
	if debug {
		fixed = is(0, addrNoRandomize)
	}
	return append(rules,
		Rule{Name: "prctl", Group: "tracing", Action: action, When: []Match{is(0, prSetPtracer)},
			Reason: "lets a process be traced by one that is not its parent: crash handlers"},
		Rule{Name: "personality", Group: "tracing", Action: action, When: []Match{fixed},
			Reason: "addresses that are not random: gdb, setarch -R"})
}
