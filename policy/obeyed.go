package policy

// The words of Handoff.
const (
	agentConfig      = "agent_config"
	buildScript      = "build_script"
	ciWorkflow       = "ci_workflow"
	editorConfig     = "editor_config"
	executable       = "executable"
	gitConfig        = "git_config"
	gitHook          = "git_hook"
	gitLink          = "git_link"
	nestedRepository = "nested_repository"
	packageManager   = "package_manager"
	pythonStartup    = "python_startup"
	shellStartup     = "shell_startup"
	socket           = "socket"
	toolStartup      = "tool_startup"
	versionManager   = "version_manager"
)

// The tables below, in lower case, hold what a tool looks for when somebody
// merely enters, opens, tests or builds a directory. What people name themselves,
// as the sources of a program, is not in them.

// obeyedPattern is a pattern and the reason of what it matches.
type obeyedPattern struct{ pattern, reason string }

// obeyedPlaces are, for a directory that may lie anywhere, what counts below it: a
// file of that name and all below such a directory, "" everything. * is one
// component, ** one or more.
var obeyedPlaces = map[string][]obeyedPattern{
	".git": {
		{"hooks", gitHook},
		{"modules/**/hooks", gitHook},   // the name of a submodule may hold slashes
		{"**/git-rebase-todo", gitHook}, // its exec lines are run by git rebase --continue
		{"config", gitConfig},
		{"config.worktree", gitConfig},
		{"commondir", gitConfig}, // where hooks and config are
		{"gitdir", gitConfig},
		{"info/attributes", gitConfig},
		{"modules/**/config", gitConfig},
		{"modules/**/config.worktree", gitConfig},
		{"modules/**/commondir", gitConfig},
		{"modules/**/gitdir", gitConfig},
		{"modules/**/info/attributes", gitConfig},
		{"worktrees/*/config.worktree", gitConfig},
		{"worktrees/*/commondir", gitConfig},
		{"worktrees/*/gitdir", gitConfig},
	},
	".husky":    {{"", gitHook}}, // core.hooksPath of who ran npm install
	".lefthook": {{"", gitHook}},

	".claude":     {{"", agentConfig}},
	".codex":      {{"", agentConfig}},
	".agents":     {{"", agentConfig}},
	".cursor":     {{"", agentConfig}},
	".gemini":     {{"", agentConfig}},
	".windsurf":   {{"", agentConfig}},
	".clinerules": {{"", agentConfig}},

	".vscode":       {{"", editorConfig}},
	".idea":         {{"", editorConfig}},
	".zed":          {{"", editorConfig}},
	".roo":          {{"", agentConfig}},
	".continue":     {{"", agentConfig}},
	".devcontainer": {{"", editorConfig}},

	".github": {
		{"workflows", ciWorkflow},
		{"actions", ciWorkflow}, // steps of workflows
		{"copilot-instructions.md", agentConfig},
	},
	".circleci":   {{"", ciWorkflow}},
	".woodpecker": {{"", ciWorkflow}},
	".buildkite":  {{"", ciWorkflow}},

	".cargo":  {{"config", packageManager}, {"config.toml", packageManager}}, // build.rustc-wrapper, runners, aliases
	".bundle": {{"config", packageManager}},
	".yarn":   {{"releases", packageManager}, {"plugins", packageManager}}, // what yarn really runs
	".mvn":    {{"", buildScript}},                                         // extensions, JVM options, the wrapper's address
	".mise":   {{"", versionManager}},
	".config": {{"mise", versionManager}, {"mise.toml", versionManager}},
}

// obeyedNames are names of files.
var obeyedNames = map[string]string{
	".gitconfig":              gitConfig,
	".gitmodules":             gitConfig,
	".gitattributes":          gitConfig, // picks filters and drivers of the user's own configuration
	".pre-commit-config.yaml": gitHook,   // these are run by an installed hook
	".pre-commit-config.yml":  gitHook,
	"lefthook.yml":            gitHook,
	".lefthook.yml":           gitHook,
	"lefthook.yaml":           gitHook,
	".lefthook.yaml":          gitHook,
	"lefthook-local.yml":      gitHook,
	".lefthook-local.yml":     gitHook,
	".lintstagedrc":           gitHook,
	".lintstagedrc.json":      gitHook,
	".overcommit.yml":         gitHook,

	".mcp.json":          agentConfig, // names programs that an agent starts
	"agents.md":          agentConfig, // instructions
	"agents.override.md": agentConfig,
	"claude.md":          agentConfig,
	"claude.local.md":    agentConfig,
	"gemini.md":          agentConfig,
	".cursorrules":       agentConfig,
	".windsurfrules":     agentConfig,

	".devcontainer.json": editorConfig,
	".vimrc":             editorConfig, // vim reads its own in the current directory with 'exrc'
	"_vimrc":             editorConfig,
	".exrc":              editorConfig,
	".nvimrc":            editorConfig,
	".nvim.lua":          editorConfig,
	".dir-locals.el":     editorConfig,
	".dir-locals-2.el":   editorConfig,

	".envrc":        shellStartup,
	".bashrc":       shellStartup,
	".bash_profile": shellStartup,
	".bash_login":   shellStartup,
	".bash_logout":  shellStartup,
	".bash_aliases": shellStartup,
	".profile":      shellStartup,
	".zshrc":        shellStartup,
	".zshenv":       shellStartup,
	".zprofile":     shellStartup,
	".zlogin":       shellStartup,
	".zlogout":      shellStartup,
	".kshrc":        shellStartup,
	".cshrc":        shellStartup,
	".tcshrc":       shellStartup,
	"config.fish":   shellStartup,
	".inputrc":      shellStartup, // binds keys to commands

	".tool-versions":      versionManager, // a version may be a path
	".mise.toml":          versionManager, // hooks, tasks and variables
	"mise.toml":           versionManager,
	".mise.local.toml":    versionManager,
	"mise.local.toml":     versionManager,
	".python-version":     versionManager,
	".node-version":       versionManager,
	".nvmrc":              versionManager,
	".ruby-version":       versionManager,
	".java-version":       versionManager,
	".go-version":         versionManager,
	".sdkmanrc":           versionManager,
	"rust-toolchain":      versionManager, // a toolchain may be a path
	"rust-toolchain.toml": versionManager,

	".npmrc":              packageManager,
	".yarnrc":             packageManager,
	".yarnrc.yml":         packageManager,
	".pnpmfile.cjs":       packageManager, // run by every pnpm install
	".pnpmfile.mjs":       packageManager,
	"pnpm-workspace.yaml": packageManager,
	"package.json":        packageManager, // its scripts
	"bunfig.toml":         packageManager, // preload
	"composer.json":       packageManager,
	"gemfile":             packageManager, // a Ruby program
	"gems.rb":             packageManager,

	".gitlab-ci.yml":           ciWorkflow,
	".travis.yml":              ciWorkflow,
	"jenkinsfile":              ciWorkflow,
	"azure-pipelines.yml":      ciWorkflow,
	"azure-pipelines.yaml":     ciWorkflow,
	"bitbucket-pipelines.yml":  ciWorkflow,
	"bitbucket-pipelines.yaml": ciWorkflow,
	".drone.yml":               ciWorkflow,
	".drone.yaml":              ciWorkflow,
	".woodpecker.yml":          ciWorkflow,
	".woodpecker.yaml":         ciWorkflow,
	".cirrus.yml":              ciWorkflow,
	"appveyor.yml":             ciWorkflow,
	".appveyor.yml":            ciWorkflow,

	"pyvenv.cfg":       pythonStartup, // which interpreter and site directory
	"sitecustomize.py": pythonStartup,
	"usercustomize.py": pythonStartup,
	"conftest.py":      pythonStartup, // imported by pytest before any test
	"pytest.ini":       pythonStartup, // addopts may load a plugin
	".pytest.ini":      pythonStartup,
	".pdbrc":           pythonStartup,

	".rprofile": toolStartup, // read from the current directory
	".irbrc":    toolStartup,
	".pryrc":    toolStartup,
	".ghci":     toolStartup,
	".iex.exs":  toolStartup,
	".gdbinit":  toolStartup,
	".lldbinit": toolStartup,

	"makefile":                  buildScript,
	"sconstruct":                buildScript,
	"build":                     buildScript,
	"build.bazel":               buildScript,
	"module.bazel":              buildScript,
	"workspace":                 buildScript,
	"flake.nix":                 buildScript,
	"shell.nix":                 buildScript,
	"default.nix":               buildScript,
	"setup.cfg":                 buildScript,
	"cargo.toml":                buildScript,
	"build.rs":                  buildScript,
	"opencode.json":             agentConfig,
	".aider.conf.yml":           agentConfig,
	"gnumakefile":               buildScript, // wins over makefile
	"justfile":                  buildScript,
	".justfile":                 buildScript,
	"taskfile.yml":              buildScript,
	"taskfile.yaml":             buildScript,
	"rakefile":                  buildScript,
	"rakefile.rb":               buildScript,
	"cmakelists.txt":            buildScript, // editors configure on opening
	"cmakepresets.json":         buildScript,
	"meson.build":               buildScript,
	"pom.xml":                   buildScript,
	"build.gradle":              buildScript,
	"build.gradle.kts":          buildScript,
	"settings.gradle":           buildScript,
	"settings.gradle.kts":       buildScript,
	"gradle-wrapper.properties": buildScript,
	"gradle-wrapper.jar":        buildScript,
	"directory.build.props":     buildScript,
	"directory.build.targets":   buildScript,
	"setup.py":                  buildScript,
	"pyproject.toml":            buildScript, // build backend, options of pytest
	"tox.ini":                   buildScript,
	"noxfile.py":                buildScript,
	".bazelrc":                  buildScript,
}

// obeyedForms are patterns of names, for path.Match.
var obeyedForms = []obeyedPattern{
	{"*.code-workspace", editorConfig},
	{"*.sublime-project", editorConfig},
	{"*.pth", pythonStartup},            // in a site directory its import lines are run
	{"*.config.[cm][jt]s", buildScript}, // of bundlers, test runners and linters: programs
	{"*.config.[jt]s", buildScript},
	{".*rc.[cm]js", buildScript},
	{".*rc.js", buildScript},
	{"*.gemspec", packageManager},
}
