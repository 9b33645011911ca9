// Package doctor runs the commands by which an operator looks before anything
// runs: doctor, config check, completion and help.
//
// doctor is held to the truth on a good host and in hostile ones that the tests
// build: under a seccomp filter, without user namespaces, with a masked or
// read-only /proc, without cgroups, without a capability. In each it must name
// what is in the way, and codespace run must refuse with the same name (without
// cgroups only with --strict). Each comes with its positive control: the same
// command without the obstacle.
//
// Started as root the tests also act as a plain user, by setpriv(1).
package doctor
