package v4a

// edit is where a chunk goes: its lines as in the patch, of which the first old
// one is line at of the file. Edits come in the order of the file.
type edit struct {
	at    int
	lines [][]byte
}

// rewriter makes the new bytes of a file, line by line.
type rewriter struct {
	f    *file
	next int // line of the file that has not been dealt with
	out  []byte
}

// rewrite applies edits. Lines that stay keep their own bytes and ending; a last
// line without an ending is given one.
func (f *file) rewrite(edits []edit) []byte {
	r := rewriter{f: f, out: make([]byte, 0, len(f.mark)+len(f.text)+grown(edits))}
	r.out = append(r.out, f.mark...)
	for _, e := range edits {
		r.keep(e.at)
		for _, line := range e.lines {
			r.line(line)
		}
	}
	r.keep(f.count())
	return r.out
}

// grown bounds by how many bytes edits make a file longer: every new line with
// its ending, and an ending for the last one.
func grown(edits []edit) int {
	total := 2
	for _, e := range edits {
		for _, line := range e.lines {
			if added(line) {
				total += len(line) + 1
			}
		}
	}
	return total
}

func (r *rewriter) line(line []byte) {
	switch {
	case added(line):
		r.out = append(r.out, content(line)...)
		r.out = append(r.out, r.f.endingBefore(r.next)...)
	case removed(line):
		r.next++
	default:
		r.keep(r.next + 1)
	}
}

// keep copies what stays, up to line end.
func (r *rewriter) keep(end int) {
	if r.next >= end {
		return
	}
	r.out = append(r.out, r.f.text[r.f.starts[r.next]:r.f.starts[end]]...)
	r.next = end
	if _, own := r.f.split(end - 1); own == nil {
		r.out = append(r.out, r.f.ending(end-1)...)
	}
}
