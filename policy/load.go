package policy

import (
	"fmt"
	"os"
)

// loader carries one file through the stations of Load.
type loader struct {
	doc      *document
	config   location
	ground   *ground
	registry *Registry

	environments map[string]Environment
	profiles     map[string]profile
	claims       []claim

	environmentName rule[string, string] // the names that a workspace can give
	profileName     rule[string, string]
}

// Load reads the registry file at path, which must be out of reach of everybody
// but root and the caller, and at most 1 MiB. It reads strictly: an error names
// file:line:column, what was found, what is allowed and what to do, for every
// fault of the file up to 20. What the file says about paths is checked against
// the disk as it is now; the paths of the result are canonical.
func Load(path string) (*Registry, error) {
	text, config, err := readTrusted(path)
	if err != nil {
		return nil, fmt.Errorf("cannot load registry: %w", err)
	}
	doc, err := parse(path, text)
	if err != nil {
		return nil, fmt.Errorf("cannot load registry: %w", err)
	}
	l := &loader{
		doc:          doc,
		config:       config,
		ground:       hostGround(os.Getenv("HOME")),
		registry:     &Registry{workspaces: map[string]Workspace{}},
		environments: map[string]Environment{hostEnvironment.Name: hostEnvironment},
		profiles:     builtinProfiles(),
	}
	doc.root().table("state", "listen", "identity", "environments", "profiles", "workspaces")
	l.service()
	l.readEnvironments()
	l.readProfiles()
	l.readWorkspaces()
	if err := doc.verdict(); err != nil {
		return nil, fmt.Errorf("cannot load registry: %w", err)
	}
	return l.registry, nil
}
