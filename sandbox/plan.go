// Package sandbox is the description of a sandbox and the protocol by which one
// is prepared.
package sandbox
