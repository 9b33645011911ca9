package seccomp

// memory is the process's own address space and hints about it.
var memory = group("memory", Allow, []call{
	{"mmap", "everywhere"},
	{"munmap", "everywhere, the cell's own PID 1"},
	{"mprotect", "ELF loader, thread stacks, JIT compilers"},
	{"mremap", "realloc of large blocks"},
	{"brk", "malloc"},
	{"msync", "databases, linkers"},
	{"mincore", "libunwind, Go's page size probe; tells only about own writable files"},
	{"madvise", "malloc, Go's and Java's heaps"},
	{"mlock", "key material in gpg and ssh; bounded by RLIMIT_MEMLOCK"},
	{"mlock2", "mlock on fault"},
	{"munlock", "the inverse of mlock"},
	{"mlockall", "gpg-agent, latency tests; bounded by RLIMIT_MEMLOCK"},
	{"munlockall", "the inverse of mlockall"},
	{"membarrier", "liburcu, .NET, Java's handshakes"},
	{"pkey_mprotect", "V8 guards JIT pages by key"},
	{"pkey_alloc", "V8 takes a key"},
	{"pkey_free", "V8 gives a key back"},
})
