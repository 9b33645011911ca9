package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"codespace/runner"
)

// kind names a message.
type kind string

const (
	kindHello   kind = "hello"
	kindRefused kind = "refused"

	kindExec      kind = "exec"
	kindRead      kind = "read"
	kindStatus    kind = "status"
	kindTerminate kind = "terminate"
	kindSignal    kind = "signal"
	kindWrite     kind = "write"
	kindResize    kind = "resize"
	kindList      kind = "list"
	kindSupport   kind = "support"
	kindFile      kind = "file"
	kindFind      kind = "find"
	kindVersions  kind = "versions"
	kindPlan      kind = "plan"
	kindApply     kind = "apply"
	kindDrop      kind = "drop"
	kindSettle    kind = "settle"
	kindPing      kind = "ping"
	kindCancel    kind = "cancel"

	kindAnswer kind = "answer"
	kindEnded  kind = "ended"
)

// MaxChunk bounds the chunk of one Read, whatever was asked for.
const MaxChunk = 256 << 10

// message is a frame's header with the frame around it. An answer has a payload
// or a fault; Uncertain says that the fault leaves the request's fate open.
type message struct {
	Kind      kind            `json:"kind"`
	ID        uint64          `json:"id,omitempty"`
	Files     int             `json:"files,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Fault     *runner.Fault   `json:"fault,omitempty"`
	Uncertain bool            `json:"uncertain,omitempty"`

	frame
}

// target is the payload of the requests about processes or a workspace.
type target struct {
	ProcessID string   `json:"process_id,omitempty"`
	Processes []string `json:"process_ids,omitempty"`
	Workspace string   `json:"workspace_id,omitempty"`
	Signal    int      `json:"signal,omitempty"`
	Rows      int      `json:"rows,omitempty"`
	Cols      int      `json:"cols,omitempty"`
	Plan      string   `json:"plan_id,omitempty"`
}

// seal encodes the header for sending. A message that is too large or has no
// encoding is an error, and nothing has been sent.
func (m message) seal(payload any) (frame, error) {
	var err error
	if m.Payload, err = json.Marshal(payload); err != nil {
		return frame{}, fmt.Errorf("cannot encode %s: %w", m.Kind, err)
	}
	m.Files = len(m.rights)
	if m.header, err = json.Marshal(m); err != nil {
		return frame{}, fmt.Errorf("cannot encode %s: %w", m.Kind, err)
	}
	if size := 4 + len(m.header) + len(m.body); size > maxFrame {
		return frame{}, &runner.Fault{
			Code:    runner.InvalidArgument,
			Message: fmt.Sprintf("the %s has %d bytes, more than %d", m.Kind, size, maxFrame),
			Next:    "send less at once",
		}
	}
	return m.frame, nil
}

// next receives one message. Both sides have the same version here, so anything
// unknown in it is a breach.
func (c *conn) next() (message, error) {
	f, err := c.receive(maxFrame)
	if err != nil {
		return message{}, err
	}
	var m message
	if err := decode(f.header, &m); err != nil {
		closeAll(f.files)
		return message{}, err
	}
	m.frame = f
	if f.dropped && len(f.files) < m.Files && m.Files <= maxFiles {
		closeAll(f.files) // EMFILE: the frame is whole, so this is the request's trouble alone
		m.files = nil
		return m, nil
	}
	if f.dropped || m.Files != len(f.files) {
		closeAll(f.files)
		return message{}, fmt.Errorf("cannot accept %s: %d descriptors came, %d were declared", m.Kind, len(f.files), m.Files)
	}
	return m, nil
}

// decode is strict, and keeps the numbers in a fault's details exact.
func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("cannot decode message: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("cannot decode message: more than one value")
	}
	return nil
}

// packArgv and unpackArgv carry arguments byte for byte.
func packArgv(argv []string) []byte {
	var body []byte
	for _, arg := range argv {
		body = binary.BigEndian.AppendUint32(body, uint32(len(arg)))
		body = append(body, arg...)
	}
	return body
}

func unpackArgv(body []byte) ([]string, error) {
	var argv []string
	for len(body) > 0 {
		if len(body) < 4 {
			return nil, errors.New("cannot decode argv: truncated length")
		}
		n := binary.BigEndian.Uint32(body)
		body = body[4:]
		if uint64(n) > uint64(len(body)) {
			return nil, fmt.Errorf("cannot decode argv: %d bytes announced, %d there", n, len(body))
		}
		argv = append(argv, string(body[:n]))
		body = body[n:]
	}
	return argv, nil
}

// filesFor refuses a number of descriptors that exec does not allow.
func filesFor(attached bool, n int) error {
	want := 0
	if attached {
		want = 3
	}
	if n != want && n != want+1 {
		return fmt.Errorf("cannot exec with %d descriptors: %d are wanted, and at most one lease", n, want)
	}
	return nil
}
