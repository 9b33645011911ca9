package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Bounds of a message around its arguments.
const (
	messageDepth = 1000 // as deep as the SDK decodes
	methodBytes  = 128
	idBytes      = 256
	safeInteger  = 1<<53 - 1 // an id beyond it would come back changed
)

// refused is a line that is not a request: the protocol error it gets.
type refused struct {
	id   json.RawMessage // nil: none that can be used
	code int64
	text string
}

func (r *refused) encode() []byte {
	data, _ := json.Marshal(map[string]any{ // strings, a number and valid JSON: cannot fail
		"jsonrpc": "2.0",
		"id":      r.id,
		"error":   map[string]any{"code": r.code, "message": r.text},
	})
	return data
}

// parse reads one message. It returns neither value for what needs no answer:
// an empty line, or a response, since this server asks its clients nothing.
func parse(unsafe []byte) (*jsonrpc.Request, *refused) {
	unsafe = bytes.TrimSpace(unsafe)
	if len(unsafe) == 0 {
		return nil, nil
	}
	if bad := objectText(unsafe); bad != nil {
		return nil, bad
	}
	all, err := members(unsafe)
	if err != nil {
		return nil, &refused{code: jsonrpc.CodeInvalidRequest, text: "not a JSON-RPC message: " + err.Error()}
	}
	fields := map[string]json.RawMessage{}
	for _, m := range all {
		fields[m.key] = m.value
	}
	return request(fields)
}

// objectText refuses what is not the text of a JSON object.
func objectText(unsafe []byte) *refused {
	switch {
	case !utf8.Valid(unsafe):
		return &refused{code: jsonrpc.CodeParseError, text: "not valid UTF-8"}
	case nesting(unsafe) > messageDepth:
		return &refused{code: jsonrpc.CodeParseError, text: fmt.Sprintf("nested deeper than %d", messageDepth)}
	case !json.Valid(unsafe):
		return &refused{code: jsonrpc.CodeParseError, text: "not valid JSON: send one message a line"}
	case unsafe[0] == '[':
		return &refused{code: jsonrpc.CodeInvalidRequest, text: "batches are not supported: send one message a line"}
	case unsafe[0] != '{':
		return &refused{code: jsonrpc.CodeInvalidRequest, text: "not a JSON-RPC message: not an object"}
	}
	return nil
}

func request(fields map[string]json.RawMessage) (*jsonrpc.Request, *refused) {
	rawID, asked := fields["id"]
	id, usable := parseID(rawID)
	invalid := func(code int64, text string) (*jsonrpc.Request, *refused) {
		if !usable {
			rawID = nil
		}
		return nil, &refused{id: rawID, code: code, text: text}
	}
	method, hasMethod := fields["method"]
	if !hasMethod && (fields["result"] != nil || fields["error"] != nil) {
		return nil, nil
	}
	var name string
	switch {
	case asked && !usable:
		return invalid(jsonrpc.CodeInvalidRequest, "id must be a short string or an integer")
	case string(fields["jsonrpc"]) != `"2.0"`:
		return invalid(jsonrpc.CodeInvalidRequest, `not a JSON-RPC message: jsonrpc must be "2.0"`)
	case !hasMethod || json.Unmarshal(method, &name) != nil || name == "" || len(name) > methodBytes:
		return invalid(jsonrpc.CodeInvalidRequest, "not a JSON-RPC message: method must be a short string")
	}
	params := fields["params"]
	if params == nil || string(params) == "null" {
		return &jsonrpc.Request{ID: id, Method: name}, nil
	}
	_, err := members(params)
	switch {
	case err != nil && !asked: // a notification gets no answer, not even this one
		return nil, nil
	case err != nil:
		return invalid(jsonrpc.CodeInvalidParams, "params must be an object with every key once: "+err.Error())
	}
	return &jsonrpc.Request{ID: id, Method: name, Params: params}, nil
}

// parseID accepts an id that comes back exactly as it was sent.
func parseID(raw json.RawMessage) (jsonrpc.ID, bool) {
	if len(raw) == 0 || len(raw) > idBytes {
		return jsonrpc.ID{}, false
	}
	if raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		id, _ := jsonrpc.MakeID(s) // cannot fail for a string
		return id, err == nil && !loneSurrogate(raw)
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < -safeInteger || n > safeInteger {
		return jsonrpc.ID{}, false
	}
	id, err := jsonrpc.MakeID(float64(n))
	return id, err == nil
}
