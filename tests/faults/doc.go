// Package faults breaks the running program and looks at what is left. It starts
// the built binaries, kills or stops one of their processes, takes away what they
// need or makes a system call fail, and then asks of the host: does anything of it
// still run, is anything left behind, does the next command work.
//
// The test process is the subreaper of everything it starts (prctl(2)), so no
// process of the tree can leave it: what is left is below this process.
//
// A fault comes with its positive control: the same steps without it.
package faults
