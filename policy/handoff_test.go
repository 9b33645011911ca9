package policy_test

import (
	"regexp"
	"strings"
	"syscall"
	"testing"

	"codespace/policy"
)

// obeyed are paths and the words that Handoff has for them.
var obeyed = map[string][]string{
	"git_hook": {".git/hooks/pre-commit", ".git/hooks/a/b", ".git/hooks", "sub/.git/hooks/post-checkout", "a/b/c/.git/hooks/x",
		".git/modules/x/hooks/pre-push", ".git/modules/libs/x/hooks/pre-push", "sub/.git/modules/x/modules/y/hooks/z",
		".git/rebase-merge/git-rebase-todo", ".git/worktrees/w/rebase-merge/git-rebase-todo", ".husky/pre-commit", "web/.husky/_/h",
		".husky", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", ".lintstagedrc"},
	"git_config": {".git/config", "sub/.git/config", ".git/config.worktree", ".git/commondir", ".git/gitdir", ".git/info/attributes",
		".git/modules/x/config", ".git/modules/libs/x/config", ".git/modules/x/config.worktree", ".git/modules/x/info/attributes",
		".git/worktrees/w/config.worktree", ".git/worktrees/w/gitdir", ".git/worktrees/w/commondir", "sub/.git/worktrees/w/gitdir",
		".gitconfig", ".gitmodules", "sub/.gitmodules", ".gitattributes"},
	"git_link":          {".git", "sub/.git", "a/b/.git"},
	"nested_repository": {"sub/.git/HEAD", "a/b/.git/HEAD", ".git/x/.git/HEAD"},
	"agent_config": {".claude/settings.json", ".claude/hooks/x.sh", ".claude/commands/x.md", ".claude", "sub/.claude/agents/x.md",
		".codex/config.toml", ".agents/x", ".cursor/rules/x.mdc", ".gemini/settings.json", ".mcp.json", "sub/.mcp.json", "AGENTS.md",
		"sub/CLAUDE.md", "GEMINI.md", ".cursorrules", ".github/copilot-instructions.md"},
	"editor_config": {".vscode/tasks.json", ".vscode", "sub/.vscode/settings.json", ".idea/workspace.xml", ".devcontainer/devcontainer.json",
		".devcontainer.json", "my.code-workspace", "sub/.code-workspace", ".vimrc", ".exrc", ".nvimrc", ".dir-locals.el"},
	"ci_workflow": {".github/workflows/x.yml", ".github/workflows/a/x.yml", ".github/actions/x/action.yml", ".gitlab-ci.yml",
		".circleci/config.yml", "Jenkinsfile", "azure-pipelines.yml", ".travis.yml", "bitbucket-pipelines.yml", ".drone.yml",
		".woodpecker.yml", ".woodpecker.yaml", ".woodpecker/build.yml", "sub/.github/workflows/x.yml"},
	"shell_startup": {".envrc", "sub/.envrc", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv",
		".zprofile", ".zlogin", "config.fish", ".config/fish/config.fish", ".inputrc"},
	"version_manager": {".tool-versions", ".python-version", ".node-version", ".nvmrc", ".ruby-version", ".mise.toml", "mise.toml",
		".config/mise/config.toml", "rust-toolchain.toml"},
	"package_manager": {".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "package.json", "web/package.json", ".yarn/releases/yarn-4.cjs",
		".cargo/config.toml", ".cargo/config", "Gemfile", "composer.json", "bunfig.toml", "x.gemspec"},
	"python_startup": {"pyvenv.cfg", "venv/pyvenv.cfg", "sitecustomize.py", "usercustomize.py", "venv/lib/python3.13/site-packages/x.pth",
		"conftest.py", "tests/unit/conftest.py", "pytest.ini"},
	"tool_startup": {".Rprofile", ".gdbinit", ".irbrc", ".ghci"},
	"build_script": {"Makefile", "makefile", "GNUmakefile", "sub/Makefile", "Justfile", "justfile", "Taskfile.yml", "Rakefile",
		"CMakeLists.txt", "build.gradle", "build.gradle.kts", "pom.xml", ".mvn/extensions.xml", "gradle/wrapper/gradle-wrapper.properties",
		"build.rs", "setup.py", "pyproject.toml", "tox.ini", "vite.config.ts", "jest.config.cjs", "eslint.config.mts", ".eslintrc.js",
		".babelrc.cjs"},
	"": {"README.md", "src/main.go", ".gitignore", ".git/HEAD", ".git/index", ".git/refs/heads/main", ".git/objects/ab/cd", ".git/COMMIT_EDITMSG",
		".git/modules/hooks/HEAD", ".git/modules/x/index", ".git/info/exclude", ".git2/hooks/x", "git/hooks/x", "x.git/config", "hooks/pre-commit",
		"config", "info/attributes", "Makefile/x", "sub/package.json/x", "package.json5", "my-package.json", "xconftest.py", "conftest.pyc",
		".claudes/x", "claude/x", ".vscode2/x", ".github/ISSUE_TEMPLATE.md", ".github/dependabot.yml", ".github", ".github/x/workflows/y",
		"workflows/x.yml", ".circleci2", ".bashrc.txt", "bashrc", "x.pth.txt", "pth", "src.js", "config.js", "a.config.json", ".eslintrc.json5",
		"\xff", "\xff/\xfe.go", "", "."},
}

func TestHandoff(t *testing.T) {
	for reason, paths := range obeyed {
		for _, path := range paths {
			for _, written := range []string{path, strings.ToUpper(path), strings.ToLower(path)} {
				for _, mode := range []uint32{0o644, 0o755, syscall.S_IFREG | 0o600} {
					equal(t, [2]string{written, policy.Handoff(written, mode, false)}, [2]string{written, reason})
				}
			}
		}
	}
}

// TestHandoffOfWhatIsProtected: what no command can change while it exists is
// named where a command makes it.
func TestHandoffOfWhatIsProtected(t *testing.T) {
	for _, pattern := range defaultProtected {
		path := strings.ReplaceAll(pattern, "*", "x")
		for _, path := range []string{path, "sub/" + path, "a/b/" + strings.ToUpper(path)} {
			if policy.Handoff(path, 0o644, true) == "" {
				t.Errorf("%s would be made without a word", path)
			}
		}
	}
}

func TestHandoffByKind(t *testing.T) {
	for _, c := range []struct {
		path   string
		mode   uint32
		isNew  bool
		reason string
	}{
		{"tool", 0o755, true, "executable"},
		{"tool", 0o755, false, ""}, // it was one before
		{"tool", 0o644, true, ""},
		{"tool", 0o100, true, "executable"},
		{"tool", 0o010, true, "executable"},
		{"tool", 0o001, true, "executable"},
		{"tool", syscall.S_IFREG | 0o700, true, "executable"},
		{"a/b/\xff", syscall.S_IFREG | 0o700, true, "executable"},
		{"tool", syscall.S_IFIFO | 0o777, true, ""},
		{"tool", syscall.S_IFLNK | 0o777, true, ""}, // these are a link's bits always
		{".git/refs/x", 0o755, true, "executable"},
		{".git/hooks/pre-commit", 0o755, true, "git_hook"},
		{"s", syscall.S_IFSOCK | 0o755, true, "socket"},
		{"s", syscall.S_IFSOCK, false, "socket"},
		{".vscode/s", syscall.S_IFSOCK, false, "socket"},
		{"src", syscall.S_IFDIR | 0o755, true, ""},
		{".git/hooks", syscall.S_IFDIR | 0o755, true, ""},
		{"sub/.git", syscall.S_IFDIR | 0o755, true, ""},
		{".git", syscall.S_IFLNK | 0o777, false, "git_link"},
		{".git/hooks", syscall.S_IFLNK | 0o777, false, "git_hook"},
		{".claude", syscall.S_IFLNK | 0o777, false, "agent_config"},
		{".envrc", syscall.S_IFIFO | 0o600, false, "shell_startup"},
	} {
		if reason := policy.Handoff(c.path, c.mode, c.isNew); reason != c.reason {
			t.Errorf("%q, mode %#o, new %v: %q, want %q", c.path, c.mode, c.isNew, reason, c.reason)
		}
	}
}

// FuzzHandoff: any path has a reason of one word or none, below any other
// directory the same.
func FuzzHandoff(f *testing.F) {
	for _, paths := range obeyed {
		for _, path := range paths {
			f.Add(path, uint32(0o644))
		}
	}
	word := regexp.MustCompile(`^([a-z]+(_[a-z]+)*)?$`)
	f.Fuzz(func(t *testing.T, path string, mode uint32) {
		reason := policy.Handoff(path, mode, true)
		if !word.MatchString(reason) {
			t.Errorf("%q: %q", path, reason)
		}
		if below := policy.Handoff("src/"+path, mode, true); reason != "" && below == "" {
			t.Errorf("%q: %q, and nothing below src", path, reason)
		}
	})
}

func BenchmarkHandoff(b *testing.B) {
	for b.Loop() {
		policy.Handoff("web/node_modules/@scope/package/dist/internal/module/index.d.ts", 0o644, true)
	}
}
