package architecture_test

const rulesOf = "tests/architecture/rules.txt"

var lattice = []planted{
	{"an import of ours", map[string]string{"gateway/more.go": "package gateway\n\nimport _ \"codespace/helper\"\n"},
		"import: gateway/more.go (line 3): gateway may not import codespace/helper"},
	{"a test's import in the program", map[string]string{"runner/more.go": "package runner\n\nimport _ \"codespace/helper\"\n"},
		"import: runner/more.go (line 3): runner may not import codespace/helper"},
	{"an import of ours in a test", map[string]string{"helper/helper_test.go": "package helper_test\n\nimport _ \"codespace/gateway\"\n"},
		"import: helper/helper_test.go (line 3): helper may not import codespace/gateway"},
	{"a package below one that is allowed", map[string]string{
		"gateway/more.go":    "package gateway\n\nimport _ \"codespace/runner/wire\"\n",
		"runner/wire/doc.go": "// Package wire is a socket.\npackage wire\n",
		rulesOf:              "+package runner/wire socket\n",
	}, "import: gateway/more.go (line 3): gateway may not import codespace/runner/wire"},
	{"another module", map[string]string{"gateway/more.go": "package gateway\n\nimport _ \"golang.org/x/sys/unix\"\n"},
		"import: gateway/more.go (line 3): gateway may not import golang.org/x/sys/unix"},
	{"cgo", map[string]string{"gateway/more.go": "package gateway\n\nimport \"C\"\n"},
		"import: gateway/more.go (line 3): gateway may not import C"},
	{"an import behind a build tag", map[string]string{"gateway/more.go": "//go:build ignore\n\npackage gateway\n\nimport _ \"codespace/helper\"\n"},
		"import: gateway/more.go (line 5): gateway may not import codespace/helper"},

	{"a permission of ours nobody uses", map[string]string{"gateway/gateway.go": "// Package gateway decides.\npackage gateway\n"},
		"unused: tests/architecture/rules.txt (line 15): gateway -> runner: a permission nobody uses"},
	{"an outside permission only tests use", map[string]string{
		"runner/runner.go":      "// Package runner runs.\npackage runner\n",
		"runner/runner_test.go": "+\nimport _ \"golang.org/x/sys/unix\"\n",
	}, "unused: tests/architecture/rules.txt (line 17): runner -> golang.org/x/sys/unix: a permission nobody uses"},
	{"a test permission nobody uses", map[string]string{"runner/runner_test.go": "package runner_test\n"},
		"unused: tests/architecture/rules.txt (line 18): runner -> helper: a permission nobody uses"},
	{"a package that went away", map[string]string{rulesOf: "+package policy gone\n"},
		"unused: tests/architecture/rules.txt (line 25): package policy: a permission nobody uses"},
	{"a package that came", map[string]string{rulesOf: "+top ledger came\n", "ledger/ledger.go": "// Package ledger remembers.\npackage ledger\n"},
		"unused: tests/architecture/rules.txt (line 20): package ledger: in use, so no longer later"},

	{"a package not in the rules", map[string]string{"runner/wire/wire.go": "// Package wire is a socket.\npackage wire\n"},
		"package: runner/wire: has no entry"},
	{"a package without a comment", map[string]string{"helper/helper.go": "package helper\n"},
		"package: helper: has no package comment"},
	{"a binary that is not there", map[string]string{rulesOf: "+binary cmd/codespace-runner plain not there\n"},
		"package: cmd/codespace-runner: is a binary in line 25 of the rules and does not exist"},
	{"a folder at the top", map[string]string{"utilities/doc.txt": "text\n"},
		"top: utilities: is not a place of this program"},
	{"a file at the top", map[string]string{"notes.txt": "text\n"},
		"top: notes.txt: is not a place of this program"},
	{"a place at the top that went away", map[string]string{rulesOf: "+top policy gone\n"},
		"unused: tests/architecture/rules.txt (line 25): top policy: a permission nobody uses"},

	{"a direct requirement", map[string]string{"go.mod": "+\nrequire (\n\texample.org/model v1.0.0\n\texample.org/other v1.0.0 // indirect\n)\n"},
		"module: go.mod (line 8): example.org/model is not on the list"},
	{"a changed pin", map[string]string{"go.mod": "module codespace\n\nrequire golang.org/x/sys v1.0.0\n"},
		"module: go.mod (line 3): golang.org/x/sys v1.0.0: pinned to v0.*"},
	{"a changed pin of an indirect one", map[string]string{
		"go.mod": "+\nrequire example.org/pinned v1.6.0 // indirect\n",
		rulesOf:  "+later module example.org/pinned v1.5. pinned\n",
	}, "module: go.mod (line 7): example.org/pinned v1.6.0: pinned to v1.5.*"},
	{"a replaced module", map[string]string{"go.mod": "+\nreplace golang.org/x/sys => ../sys\n"},
		"module: go.mod (line 7): replace is not used here"},
	{"a module nobody requires", map[string]string{rulesOf: "+module example.org/x any unused\n"},
		"unused: tests/architecture/rules.txt (line 25): module example.org/x: a permission nobody uses"},
	{"a permission without a module", map[string]string{rulesOf: "+later outside example.org/x comes without its module\n"},
		"module: tests/architecture/rules.txt (line 25): example.org/x is of no listed module"},
}

var bans = []planted{
	{"os/exec where nothing is started", map[string]string{"gateway/more.go": "package gateway\n\nimport _ \"os/exec\"\n"},
		"execution: gateway/more.go (line 3): imports os/exec"},
	{"a fork where nothing is started", map[string]string{"gateway/more.go": "package gateway\n\nimport sc \"syscall\"\n\nvar _ = sc.Exec(\"\", nil, nil)\n"},
		"execution: gateway/more.go (line 5): calls syscall.Exec"},
	{"an init", map[string]string{"runner/more.go": "package runner\n\nfunc init() {}\n"},
		"init: runner/more.go (line 3): init() outside"},
	{"a sleep", map[string]string{"runner/more.go": "package runner\n\nimport \"time\"\n\nfunc wait() { time.Sleep(1) }\n"},
		"sleep: runner/more.go (line 5): waits by time.Sleep"},
	{"a sleep under another name", map[string]string{"runner/more.go": "package runner\n\nimport clock \"time\"\n\nfunc wait() { clock.Sleep(1) }\n"},
		"sleep: runner/more.go (line 5): waits by time.Sleep"},
	{"a skip", map[string]string{"helper/helper_test.go": "package helper\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Skipf(\"no\") }\n"},
		"skip: helper/helper_test.go (line 5): skips by itself"},
	{"a path in openat2fs", map[string]string{
		"openat2fs/fs.go": "// Package openat2fs opens.\npackage openat2fs\n\nimport \"os\"\n\nvar _, _ = os.ReadDir(\".\")\n",
		rulesOf:           "+top openat2fs files\npackage openat2fs files\n",
	}, "path: openat2fs/fs.go (line 6): os.ReadDir goes by a path"},
}
