// Package patch is a patch helper: a process that plans and applies one patch of one
// workspace, and nothing else.
//
// It is started by the runner, one for each patch and perhaps some time before it, told
// whom to become and what it may touch, and locks itself down before it sees a byte of
// the patch: the identity of the workspace's owner, no capabilities, no new privileges,
// Landlock where the kernel has it, and a system-call filter that knows neither sockets
// nor programs. What a patch can do to it, it can do to files beneath the workspace's
// root and to nothing else; without Landlock, to whatever files their owner can reach.
//
// It promises all or nothing. Every new content is written to a temporary beside its
// target and synced before the first target changes; then the two change places, so
// that the old content is kept until all is done and verified. What an apply that
// fails, or a helper that dies, leaves behind is brought to an end by looking at the
// disk alone: either every file is as it was, or every file is as planned.
//
// It does not promise to keep what somebody writes into a file that was open while it
// was replaced, to keep extended attributes and ACLs, or to put back a file that
// somebody else changed meanwhile: that one is left as found, and named.
package patch
