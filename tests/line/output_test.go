package line_test

import (
	"bytes"
	"encoding/base64"
	"testing"
)

const retained = 1 << 20 // of output, unless the operator says otherwise

func TestOutputOf200MB(t *testing.T) {
	s := start(t, workspace(t))
	const total = 200_000_000
	id := s.started(shell("yes 0123456789abcde | head -c 199999997; printf END")...)
	st := s.exited(id)
	st.wants(t, fields{"termination": "exited", "exit_code": 0, "output_total": total, "output_retained_from": total - retained})
	first := s.call("read_process", map[string]any{"process_id": id})
	first.wants(t, fields{"output_lost": total - retained, "retained_from": total - retained})
	kept := s.output(id, 0)
	pattern := bytes.Repeat([]byte("0123456789abcde\n"), retained/16+1)
	want := append(pattern[:retained-3:retained-3], "END"...) // 16 divides where the kept part begins
	if !bytes.Equal(kept, want) {
		t.Errorf("the last %d bytes differ: %d bytes, end %q", retained, len(kept), kept[max(0, len(kept)-20):])
	}
	middle := s.call("read_process", map[string]any{"process_id": id, "cursor": total - retained - 5, "max_bytes": 4})
	middle.wants(t, fields{"output_lost": 5, "chunk": "0123", "cursor": total - retained + 4})
}

func TestOutputThatIsNoText(t *testing.T) {
	s := start(t, workspace(t))
	id := s.started(shell(`printf 'a\377\376\303(\342\202\254\0z\303'`)...)
	s.exited(id)
	raw := "a\xff\xfe\xc3(\u20ac\x00z\xc3"
	exact := s.call("read_process", map[string]any{"process_id": id, "encoding": "base64"})
	exact.wants(t, fields{"chunk": base64.StdEncoding.EncodeToString([]byte(raw)), "encoding": "base64", "cursor": len(raw), "eof": true})
	shown := s.call("read_process", map[string]any{"process_id": id})
	shown.wants(t, fields{"chunk": "a\ufffd\ufffd\ufffd(\u20ac\x00z\ufffd", "encoding": "utf-8", "cursor": len(raw), "eof": true})
}

// A page never ends within a character.
func TestPagesOfCharacters(t *testing.T) {
	s := start(t, workspace(t))
	id := s.started(shell(`printf '\342\202\254\342\202\254\342\202\254'`)...)
	s.exited(id)
	whole := ""
	for cursor := int64(0); ; {
		a := s.call("read_process", map[string]any{"process_id": id, "cursor": cursor, "max_bytes": 4})
		whole += a.text("chunk")
		if cursor = a.number("cursor"); a.text("eof") == "true" {
			break
		}
		if cursor%3 != 0 {
			t.Fatalf("a page ends at %d: %v", cursor, a.fields)
		}
	}
	if whole != "\u20ac\u20ac\u20ac" {
		t.Errorf("pages add up to %q", whole)
	}
}

// Output is kept whether or not anybody reads it while the command runs.
func TestUnreadOutputHoldsNothingUp(t *testing.T) {
	s := start(t, workspace(t))
	id := s.started(shell("head -c 3000000 /dev/zero; touch done")...)
	s.exited(id).wants(t, fields{"termination": "exited", "exit_code": 0, "output_total": 3_000_000})
	if absent(s.cmd.Args[3] + "/done") {
		t.Error("the command did not get to its end")
	}
}
