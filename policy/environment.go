package policy

// hostEnvironment exists without being written.
var hostEnvironment = Environment{Name: "host", Kind: KindHost}

// readEnvironments reads [environments.NAME]. An environment that is not built
// yet loads: Decide answers that it is unavailable.
func (l *loader) readEnvironments() {
	table := l.doc.root().get("environments")
	if !table.named() {
		return
	}
	for _, name := range table.names() {
		s := table.get(name)
		if !l.newName(s, name) || !s.table("kind") {
			continue
		}
		kinds := oneOf(KindHost, KindContainer, KindRemote)
		if name == hostEnvironment.Name {
			kinds = oneOf(KindHost)
		}
		e := Environment{Name: name}
		require(s.get("kind"), kinds, &e.Kind)
		l.environments[name] = e
	}
}

// newName reports whether the operator may give that name to s.
func (l *loader) newName(s setting, name string) bool {
	if _, f := plainName.apply(name); f != nil {
		s.rejectName(f)
		return false
	}
	return true
}
