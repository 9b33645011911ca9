package seccomp_test

import (
	"bytes"
	"regexp"
	"testing"

	libseccomp "github.com/seccomp/libseccomp-golang"

	"codespace/helper/seccomp"
)

// TestRulesAreStated checks the form of every row.
func TestRulesAreStated(t *testing.T) {
	for _, debug := range []bool{false, true} {
		for _, rule := range seccomp.Rules(debug) {
			if rule.Name == "" || rule.Group == "" || rule.Reason == "" {
				t.Errorf("%+v: want a name, a group and a reason", rule)
			}
			seen := map[uint]bool{}
			for _, match := range rule.When {
				if match.Arg > 5 || match.Value&^match.Mask != 0 {
					t.Errorf("%s (%s): match %+v can never hold", rule.Name, rule.Reason, match)
				}
				if seen[match.Arg] {
					t.Errorf("%s (%s): two matches on argument %d", rule.Name, rule.Reason, match.Arg)
				}
				seen[match.Arg] = true
			}
			call, err := libseccomp.GetSyscallFromNameByArch(rule.Name, libseccomp.ArchAMD64)
			if err == nil && rule.Number != 0 && uint(call) != rule.Number {
				t.Errorf("%s: has number %d, libseccomp says %d", rule.Name, rule.Number, call)
			}
		}
	}
}

// TestEveryCallIsAccountedFor: each call libseccomp knows has one kind of rule.
func TestEveryCallIsAccountedFor(t *testing.T) {
	for _, debug := range []bool{false, true} {
		whole, partly := map[string]int{}, map[string]int{}
		for _, rule := range seccomp.Rules(debug) {
			if len(rule.When) == 0 {
				whole[rule.Name]++
			} else if rule.Action == seccomp.Allow {
				partly[rule.Name] = 1
			}
		}
		for nr := range 471 {
			name, err := libseccomp.ScmpSyscall(nr).GetNameByArch(libseccomp.ArchAMD64)
			if err != nil {
				continue
			}
			if n := whole[name] + partly[name]; n != 1 {
				t.Errorf("debug %v: call %d (%s) is stated %d times, want once", debug, nr, name, n)
			}
			delete(whole, name)
			delete(partly, name)
		}
		for name := range whole {
			t.Errorf("debug %v: %s is no call of x86-64", debug, name)
		}
		for name := range partly {
			t.Errorf("debug %v: %s is no call of x86-64", debug, name)
		}
	}
}

// TestNoRedundantRule drops each rule in turn: some row must answer otherwise.
// Absent rows are what the default does, so they cannot be dropped from it.
func TestNoRedundantRule(t *testing.T) {
	for _, debug := range []bool{false, true} {
		rules := seccomp.Rules(debug)
		rows := expectations(debug)
		for i, rule := range rules {
			if rule.Action == seccomp.Absent {
				continue
			}
			rest := append(append([]seccomp.Rule{}, rules[:i]...), rules[i+1:]...)
			programs, err := seccomp.CompileRules(rest)
			if err != nil {
				t.Fatalf("cannot compile without %s (%s): %v", rule.Name, rule.Reason, err)
			}
			if sameAnswers(t, newFilter(programs), rows) {
				t.Errorf("debug %v: no row needs the rule for %s (%s)", debug, rule.Name, rule.Reason)
			}
		}
	}
}

func sameAnswers(t *testing.T, f filter, rows []row) bool {
	for _, r := range rows {
		if f.answer(t, r.data) != r.want {
			return false
		}
	}
	return true
}

// TestUnknownCallIsAnError: an allowed call must not vanish silently.
func TestUnknownCallIsAnError(t *testing.T) {
	allowed := []seccomp.Rule{{Name: "no_such_call", Action: seccomp.Allow}}
	if _, err := seccomp.CompileRules(allowed); err == nil {
		t.Error("compiled an allow rule for a call that does not exist")
	}
	refusal := []seccomp.Rule{{Name: "no_such_call", Action: seccomp.Deny}}
	if _, err := seccomp.CompileRules(refusal); err != nil {
		t.Errorf("a refused call that does not exist: %v", err)
	}
	numbered := []seccomp.Rule{{Name: "no_such_call", Action: seccomp.Allow, Number: 452}}
	programs, err := seccomp.CompileRules(numbered)
	if err != nil {
		t.Fatal(err)
	}
	if got := newFilter(programs).answer(t, data{nr: 452, arch: native}); got != allow {
		t.Errorf("a call allowed by number answers %v", got)
	}
}

// TestCompileIsDeterministic: same rules, same bytes, same digest.
func TestCompileIsDeterministic(t *testing.T) {
	first := mustCompile(t, false)
	for range 20 {
		again := mustCompile(t, false)
		if !bytes.Equal(first.Allow, again.Allow) || !bytes.Equal(first.Deny, again.Deny) {
			t.Fatal("two compilations differ")
		}
	}
	tracing := mustCompile(t, true)
	if first.Digest() == tracing.Digest() {
		t.Error("debug has the digest of the ordinary profile")
	}
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(first.Digest()) {
		t.Errorf("digest is %q", first.Digest())
	}
	moved := seccomp.Programs{Allow: append(bytes.Clone(first.Allow), first.Deny[:8]...), Deny: first.Deny[8:]}
	if first.Digest() == moved.Digest() {
		t.Error("the digest does not say where one program ends")
	}
}

func mustCompile(t *testing.T, debug bool) seccomp.Programs {
	t.Helper()
	programs, err := seccomp.Compile(debug)
	if err != nil {
		t.Fatal(err)
	}
	return programs
}
