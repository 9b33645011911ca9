package v4a

import (
	"math"
	"slices"
)

// nowhere is behind every line.
const nowhere = math.MaxInt32

// index answers where the patterns of a file are in one pass, at or behind a line
// that only moves forward. Every line at which some pattern begins has a slot, and
// the places of a pattern are the slots from low to high of its node: a node's
// own, then those of the nodes that link to it. A tree of minima over the slots
// gives the first of them; a line that the search has left is taken out.
type index struct {
	steps     *steps
	nodes     []int32 // by pattern
	low, high []int32 // by node
	slot      []int32 // by line, -1 for none
	minima    []int32 // the leaves are the second half
	left      int     // lines taken out
}

func newIndex(s *steps, p pass, f *file, patterns [][][]byte) *index {
	a := newAutomaton(s)
	x := &index{steps: s}
	for _, pattern := range patterns {
		x.nodes = append(x.nodes, a.add(p, pattern))
	}
	order := a.connect()
	x.slot = a.states(p, f)
	x.place(a, order)
	return x
}

// place gives slots to lines. Until then slot holds states.
func (x *index) place(a *automaton, order []int32) {
	own := make([]int32, len(order))
	for _, state := range x.slot {
		own[state]++
	}
	own[0] = 0 // no pattern begins there
	total := slices.Clone(own)
	for _, node := range slices.Backward(order[1:]) {
		total[a.link[node]] += total[node]
	}
	x.low, x.high = make([]int32, len(order)), make([]int32, len(order))
	free := make([]int32, len(order)) // where the next node that links to one begins
	for _, node := range order[1:] {
		x.low[node] = free[a.link[node]]
		x.high[node] = x.low[node] + total[node]
		free[a.link[node]] = x.high[node]
		free[node] = x.low[node] + own[node]
	}
	slots := total[0]
	x.minima = make([]int32, 2*slots)
	next := slices.Clone(x.low)
	for line, state := range x.slot {
		x.slot[line] = -1
		if state == 0 {
			continue
		}
		x.slot[line] = next[state]
		x.minima[slots+next[state]] = int32(line)
		next[state]++
	}
	for i := slots - 1; i > 0; i-- {
		x.minima[i] = min(x.minima[2*i], x.minima[2*i+1])
	}
	*x.steps += steps(len(order) + len(x.slot))
}

// leave takes out the lines before a line.
func (x *index) leave(line int) {
	for ; x.left < line; x.left++ {
		*x.steps++
		if slot := x.slot[x.left]; slot >= 0 {
			x.remove(slot)
		}
	}
}

func (x *index) remove(slot int32) {
	i := slot + int32(len(x.minima)/2)
	x.minima[i] = nowhere
	for i /= 2; i > 0; i /= 2 {
		*x.steps++
		x.minima[i] = min(x.minima[2*i], x.minima[2*i+1])
	}
}

// first is the first place from slot low to before high.
func (x *index) first(low, high int32) int {
	least := int32(nowhere)
	slots := int32(len(x.minima) / 2)
	for low, high = low+slots, high+slots; low < high; low, high = low/2, high/2 {
		*x.steps++
		if low%2 == 1 {
			least = min(least, x.minima[low])
			low++
		}
		if high%2 == 1 {
			high--
			least = min(least, x.minima[high])
		}
	}
	return int(least)
}

// find is the first place of a pattern, and the next one, overlapping or not.
func (x *index) find(pattern int) (first, second int) {
	node := x.nodes[pattern]
	low, high := x.low[node], x.high[node]
	first = x.first(low, high)
	if first == nowhere {
		return nowhere, nowhere
	}
	slot := x.slot[first]
	return first, min(x.first(low, slot), x.first(slot+1, high))
}

// at says whether a pattern is at a line.
func (x *index) at(pattern, line int) bool {
	node := x.nodes[pattern]
	return x.slot[line] >= x.low[node] && x.slot[line] < x.high[node]
}

// all is every place of a pattern.
func (x *index) all(pattern int) []int {
	var places []int
	node := x.nodes[pattern]
	slots := int32(len(x.minima) / 2)
	for _, line := range x.minima[slots+x.low[node] : slots+x.high[node]] {
		if line != nowhere {
			places = append(places, int(line))
		}
	}
	slices.Sort(places)
	return places
}
