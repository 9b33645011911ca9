// Package openat2fs reads, finds and writes files beneath one directory handle,
// while whatever runs in that directory renames and links as it likes.
//
// It stands at the end of the line and is the only place where files of a
// workspace are touched on the host. The root is opened once and stays the same
// directory, whatever happens to its path. Every name below it is resolved by
// one call, openat2(2), beneath that handle: the kernel refuses links, magic
// links, mounts and ways up in the same step in which it opens. There is no
// check of a path that is used later, and no fallback where the call is missing.
//
// It promises:
//   - nothing outside the root is opened for reading, listed, made, changed or removed;
//   - no call waits for a FIFO, a socket, a device or the holder of a file lease;
//   - a version is the SHA-256 of the very bytes that were read, all of them;
//   - find is bounded, sorted bytewise, and says when something is missing;
//   - an error has a stable code, a path relative to the root and its errno, and
//     never names a place outside.
//
// It does not promise:
//   - anything about a hard link: it is a file of the workspace like any other,
//     also where another of its names lies outside;
//   - that two calls see the same file, or that what one saw is still there;
//   - that a file which somebody writes in place was read at one moment. A change
//     of its size or times meanwhile is seen and the file read again, but a write
//     is stamped when it begins, one through a memory mapping later, and older
//     kernels stamp by the tick. The version is still that of the bytes returned;
//   - to end a system call that the file system itself blocks (a dead network
//     server, a hung FUSE daemon): contexts are honoured between calls.
//
// The names of path.go cannot hold "..", so that a function which takes one
// has nothing left to check.
package openat2fs
