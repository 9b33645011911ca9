package seccomp

// network works on sockets that exist. Which may be made is in filtered.go,
// whom they reach is the network namespace's matter.
var network = group("network", Allow, []call{
	{"connect", "clients"},
	{"accept", "servers"},
	{"accept4", "servers"},
	{"bind", "servers"},
	{"listen", "servers"},
	{"getsockname", "which port a server got"},
	{"getpeername", "servers, is-a-socket probes"},
	{"setsockopt", "options of sockets that may be made"},
	{"getsockopt", "the result of a connect"},
	{"shutdown", "half-closed streams"},
	{"sendto", "clients and servers, DNS"},
	{"recvfrom", "clients and servers, DNS"},
	{"sendmsg", "descriptors between processes, the cell's own PID 1"},
	{"recvmsg", "descriptors between processes, the cell's own PID 1"},
	{"sendmmsg", "glibc's resolver asks A and AAAA at once"},
	{"recvmmsg", "datagram servers"},
})

// ipc is System V and POSIX inter-process communication inside the cell's own
// IPC namespace.
var ipc = group("ipc", Allow, []call{
	{"shmget", "System V shared memory: PostgreSQL, X clients"},
	{"shmat", "System V shared memory: map"},
	{"shmdt", "System V shared memory: unmap"},
	{"shmctl", "System V shared memory: remove"},
	{"semget", "System V semaphores: PostgreSQL, fakeroot"},
	{"semop", "System V semaphores: PostgreSQL, fakeroot"},
	{"semtimedop", "glibc's semop"},
	{"semctl", "System V semaphores: remove"},
	{"msgget", "System V queues: fakeroot, teaching programs"},
	{"msgsnd", "System V queues: send"},
	{"msgrcv", "System V queues: receive"},
	{"msgctl", "System V queues: remove"},
	{"mq_open", "POSIX queues; bounded by RLIMIT_MSGQUEUE"},
	{"mq_unlink", "POSIX queues: remove"},
	{"mq_timedsend", "POSIX queues: send"},
	{"mq_timedreceive", "POSIX queues: receive"},
	{"mq_notify", "POSIX queues: signal on arrival"},
	{"mq_getsetattr", "POSIX queues: size"},
})
