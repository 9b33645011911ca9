package v4a

// automaton finds all patterns of a file at once, in one run over its lines (Aho
// and Corasick, 1975). Patterns and file are read backwards, so that its state at
// a line tells which patterns begin there: those whose node is the state, or is
// reached from it by links.
type automaton struct {
	steps    *steps
	words    *vocabulary
	children map[uint64]int32 // by node and word
	parent   []int32
	word     []int32
	depth    []int32
	link     []int32 // the longest proper suffix of a node that is a node
}

// steps counts work: a bounded piece of a line, a node or a place each.
type steps int64

// lineSteps is the work of going once through a line.
func (s *steps) line(line []byte) { *s += steps(1 + len(line)/64) }

func newAutomaton(s *steps) *automaton {
	return &automaton{steps: s, words: newVocabulary(), children: map[uint64]int32{},
		parent: []int32{0}, word: []int32{-1}, depth: []int32{0}}
}

func branch(node, word int32) uint64 { return uint64(node)<<32 | uint64(uint32(word)) }

// add takes a pattern and is its node, never 0 if the pattern has lines.
func (a *automaton) add(p pass, pattern [][]byte) int32 {
	node := int32(0)
	for i := len(pattern) - 1; i >= 0; i-- {
		a.steps.line(pattern[i])
		var own []byte
		word := a.words.add(p.key(pattern[i], &own))
		child, ok := a.children[branch(node, word)]
		if !ok {
			child = int32(len(a.parent))
			a.children[branch(node, word)] = child
			a.parent = append(a.parent, node)
			a.word = append(a.word, word)
			a.depth = append(a.depth, a.depth[node]+1)
		}
		node = child
	}
	return node
}

// connect finds the links, once all patterns are there. It returns the nodes with
// every one behind its parent and its link.
func (a *automaton) connect() []int32 {
	order := byDepth(a.depth)
	a.link = make([]int32, len(a.parent))
	for _, node := range order {
		if a.depth[node] > 1 {
			a.link[node] = a.follow(a.link[a.parent[node]], a.word[node])
		}
	}
	return order
}

// follow is the state behind a state and a word.
func (a *automaton) follow(state, word int32) int32 {
	if word < 0 {
		return 0
	}
	for {
		*a.steps++
		child, ok := a.children[branch(state, word)]
		switch {
		case ok:
			return child
		case state == 0:
			return 0
		}
		state = a.link[state]
	}
}

// states is the state at every line of a file.
func (a *automaton) states(p pass, f *file) []int32 {
	states := make([]int32, f.count())
	state := int32(0)
	var scratch []byte
	for i := f.count() - 1; i >= 0; i-- {
		line := f.line(i)
		a.steps.line(line)
		state = a.follow(state, a.words.find(p.key(line, &scratch)))
		states[i] = state
	}
	return states
}

// byDepth sorts nodes by counting.
func byDepth(depth []int32) []int32 {
	var starts []int32
	for _, d := range depth {
		for int(d)+1 >= len(starts) {
			starts = append(starts, 0)
		}
		starts[d+1]++
	}
	for d := 1; d < len(starts); d++ {
		starts[d] += starts[d-1]
	}
	order := make([]int32, len(depth))
	for node, d := range depth {
		order[starts[d]] = int32(node)
		starts[d]++
	}
	return order
}
