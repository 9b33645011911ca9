package runner

// Ended says that a process and its whole tree are gone and that nothing of it
// can touch the workspace any more. It is told before Exited can be seen.
type Ended struct {
	ProcessID   string      `json:"process_id"`
	Workspace   string      `json:"workspace_id"`
	Termination Termination `json:"termination"`
	ExitCode    *int        `json:"exit_code,omitempty"`
	Signal      string      `json:"signal,omitempty"` // "SIGKILL"
}

// Support is what the environment can do, as found out on this host.
type Support struct {
	Available bool     `json:"available"`
	Reason    string   `json:"reason,omitempty"` // why not: the kernel feature, sysctl or profile in the way
	TTY       bool     `json:"tty"`
	Layers    []string `json:"layers"`            // in force for every command, as receipts name them
	Missing   []string `json:"missing,omitempty"` // layers and limits that cannot be enforced here
	Cgroup    string   `json:"cgroup"`            // "v2", "v1", "hybrid" or "none"
	Network   string   `json:"network"`           // how a restricted network is enforced
}
