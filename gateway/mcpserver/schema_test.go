package mcpserver_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"codespace/gateway/mcpserver"
)

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n"

type listed struct {
	Name         string
	Title        string
	Description  string
	InputSchema  map[string]any
	OutputSchema map[string]any
	Annotations  map[string]any
}

func listedTools(t *testing.T) []listed {
	t.Helper()
	var list struct{ Tools []listed }
	answer := script(t, mcpserver.New(nil, silent(), "test"), opening+listTools)["1"]
	if err := json.Unmarshal(answer.Result, &list); err != nil {
		t.Fatal(err)
	}
	return list.Tools
}

func TestToolsListStaysSmall(t *testing.T) {
	answer := script(t, mcpserver.New(nil, silent(), "test"), opening+listTools)["1"]
	n := len(listedTools(t))
	t.Logf("tools/list: %d bytes for %d tools", len(answer.Result), n)
	if len(answer.Result) >= 32<<10 || len(answer.Result) > n*1560 { // 21 tools must fit as well
		t.Errorf("tools/list is %d bytes for %d tools", len(answer.Result), n)
	}
}

func TestEveryToolSaysEverything(t *testing.T) {
	for _, tool := range listedTools(t) {
		if tool.Title == "" || tool.Description == "" {
			t.Errorf("%s lacks a title or a description", tool.Name)
		}
		for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if _, ok := tool.Annotations[hint].(bool); !ok {
				t.Errorf("%s does not state %s", tool.Name, hint)
			}
		}
		if strings.Contains(tool.Description, "process_id") && !strings.Contains(tool.Description, "15 minutes") {
			t.Errorf("%s does not state how long a process_id lives", tool.Name)
		}
	}
}

// inputKeywords are all that an input schema may say.
var inputKeywords = []string{"type", "description", "properties", "required", "additionalProperties", "items", "enum",
	"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties"}

func TestInputSchemas(t *testing.T) {
	banned := []string{"cwd", "env", "timeout", "tty_size", "environment_id", "network", "profile", "approved"}
	for _, tool := range listedTools(t) {
		if tool.InputSchema["type"] != "object" || tool.InputSchema["additionalProperties"] != false {
			t.Errorf("%s: the root is no plain object", tool.Name)
		}
		walkInput(t, tool.Name, tool.InputSchema)
		properties, _ := tool.InputSchema["properties"].(map[string]any)
		for _, key := range banned {
			if _, ok := properties[key]; ok {
				t.Errorf("%s takes %s", tool.Name, key)
			}
		}
		required, _ := tool.InputSchema["required"].([]any)
		for _, key := range required {
			if _, ok := properties[key.(string)]; !ok {
				t.Errorf("%s requires %v, which it does not take", tool.Name, key)
			}
		}
	}
}

// walkInput checks a schema and all below it: a type of one name, known
// keywords, closed objects, bounded lists, no boolean in place of a schema.
func walkInput(t *testing.T, path string, node any) {
	t.Helper()
	schema, ok := node.(map[string]any)
	if !ok {
		t.Errorf("%s is %v, not an object", path, node)
		return
	}
	for keyword := range schema {
		if !slices.Contains(inputKeywords, keyword) {
			t.Errorf("%s uses %s", path, keyword)
		}
	}
	switch schema["type"] {
	case "object":
		if others, some := schema["additionalProperties"].(map[string]any); some {
			if _, bounded := schema["maxProperties"].(float64); !bounded {
				t.Errorf("%s has no maxProperties", path)
			}
			walkInput(t, path+".*", others)
		} else if schema["additionalProperties"] != false {
			t.Errorf("%s is open", path)
		}
		properties, _ := schema["properties"].(map[string]any)
		for key, below := range properties {
			walkInput(t, path+"."+key, below)
		}
	case "array":
		if _, ok := schema["maxItems"].(float64); !ok {
			t.Errorf("%s has no maxItems", path)
		}
		walkInput(t, path+"[]", schema["items"])
	case "string", "integer", "boolean":
	default:
		t.Errorf("%s has type %v", path, schema["type"])
	}
}

func TestOutputSchemas(t *testing.T) {
	errorFields := map[string]string{"code": "string", "message": "string", "retryable": "boolean", "details": "object",
		"operation_id": "string", "approval_id": "string"}
	for _, tool := range listedTools(t) {
		if keys := slices.Sorted(maps.Keys(tool.OutputSchema)); !slices.Equal(keys, []string{"properties", "type"}) || tool.OutputSchema["type"] != "object" {
			t.Errorf("%s: output says %v", tool.Name, keys)
		}
		for key, node := range tool.OutputSchema["properties"].(map[string]any) {
			field, _ := node.(map[string]any)
			kind, plain := field["type"].(string)
			if !plain {
				t.Errorf("%s.%s has type %v", tool.Name, key, field["type"])
			}
			for keyword := range field {
				if keyword != "type" && keyword != "description" {
					t.Errorf("%s.%s uses %s", tool.Name, key, keyword)
				}
			}
			if want, clash := errorFields[key]; clash && want != kind {
				t.Errorf("%s.%s is %s, in an error %s", tool.Name, key, kind, want)
			}
		}
	}
}
