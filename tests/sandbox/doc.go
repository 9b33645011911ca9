// Package sandbox drives the built codespace-helper by its own protocol, with no
// runner around it: what a sandbox shows and hides, what it refuses, and what is
// left when one of its processes dies.
//
// The test process is the subreaper of what it starts (prctl(2)), so nothing of a
// helper can leave it: what is left of one becomes its child and is waited for.
//
// A thing that must not work inside is shown to work outside, or in the sandbox
// next to it.
package sandbox
