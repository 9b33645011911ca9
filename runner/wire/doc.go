// Package wire is the runner socket: how a gateway asks a runner, over one Unix
// stream socket, to start, observe and end processes.
//
// It stands between gateway and runner. The gateway Spawns the runner and holds
// its Client; the runner Serves that one connection and ends its subtree when it
// is cut. Each side checks the other before any work: the runner the peer's uid
// and pid (SO_PEERCRED), both the version, the runner the registry's digest.
//
// It promises that a request is delivered at most once and is never re-sent;
// that every Exec or ApplyPatch whose fate is not known is an *Uncertain and every
// other error of them means that nothing was done; that an Ended is handed over before
// any later answer; that descriptors arrive with exactly the request they were
// sent with, close-on-exec, or are closed; that memory is bounded on both sides,
// whatever the peer does; that a breach of the protocol cuts the connection.
//
// It does not promise to reconnect, to keep a peer of the same uid out, to stop a
// command whose Exec was given up, or to notice a stopped runner unless Watch is
// called.
//
// # Frame
//
//	┌────────────┬────────────┬───────────────┬───────────────┐
//	│ u32 length │ u32 header │ header, JSON  │ body, bytes   │   big endian
//	└────────────┴────────────┴───────────────┴───────────────┘
//	  length counts everything after itself, at most 16 MiB (4 KiB until both
//	  sides have greeted); header counts the header
//
// Descriptors travel as SCM_RIGHTS with the frame's first byte. The header says
// how many, at most 4; one more or one fewer cuts the connection.
//
// # Conversation
//
//	gateway                                             runner
//	   │── hello {magic, version, digest} ────────────────▶│  form fixed for
//	   │◀── hello {magic, version, pid} or refused {reason}│  every version
//	   │                                                   │
//	   │── exec {id, ExecRequest} argv, descriptors ──────▶│
//	   │── read {id, ReadRequest} ────────────────────────▶│
//	   │── status, terminate {id, process_id} ────────────▶│
//	   │── signal {id, process_id, signal} ───────────────▶│
//	   │── file, find, versions {id, ...} ────────────────▶│
//	   │── plan {id, PatchRequest} patch, lease ──────────▶│
//	   │── apply, drop {id, plan_id} ─────────────────────▶│
//	   │── settle {id, SettleRequest} lease ──────────────▶│
//	   │── support {id, workspace_id}, ping {id} ─────────▶│
//	   │◀── answer {id, payload or fault} chunk ───────────│  once per id, any order
//	   │── cancel {id} ───────────────────────────────────▶│  not answered itself
//	   │◀── ended {process_id, workspace_id, how} ─────────│  without id
//	   ╳ cut: the runner ends everything it owns           ╳
//
// The body of exec is argv, each argument as u32 length and its bytes, so that an
// argument need not be UTF-8; the body of a read's answer is the chunk. The
// descriptors of exec are stdin, stdout and stderr if attached, then, optionally,
// the lease.
//
// # Bounds
//
// The runner works on at most 512 requests and 64 MiB of them at once. One more
// is answered LIMIT_EXCEEDED; ping and cancel are served nevertheless. A client
// that does not read blocks the runner's answers and thereby, in the end, its own
// requests. An Ended is written by whoever reports it, who waits as long as the
// client does not read: nothing is queued.
package wire
