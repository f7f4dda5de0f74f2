// Command check writes the schemas that Kubernetes publishes (swagger.json) in the form that kubeconform reads: one
// file for each kind and version, strict: a field that is not described is a fault.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: check SWAGGER.JSON FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

// kind is a kind of object, as the swagger document names it.
type kind struct{ Group, Version, Kind string }

// file is the name that kubeconform looks for: of a group its first part, and of the core group nothing.
func (k kind) file() string {
	parts := []string{k.Kind}
	if group, _, _ := strings.Cut(k.Group, "."); group != "" {
		parts = append(parts, group)
	}
	return strings.ToLower(strings.Join(append(parts, k.Version), "-")) + ".json"
}

func write(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var doc struct{ Definitions map[string]map[string]any }
	if err := json.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	for _, d := range doc.Definitions {
		strict(d)
	}
	for name, d := range doc.Definitions {
		raw, _ := json.Marshal(d["x-kubernetes-group-version-kind"])
		var kinds []kind
		if json.Unmarshal(raw, &kinds) != nil || len(kinds) != 1 {
			continue // no object of its own, or one of every group
		}
		schema, err := json.Marshal(map[string]any{"$schema": "http://json-schema.org/draft-07/schema#",
			"allOf": []any{map[string]any{"$ref": "#/definitions/" + name}}, "definitions": used(doc.Definitions, name)})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(to, kinds[0].file()), schema, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// strict forbids in a definition what it does not describe, and says what the two types are that it leaves open.
func strict(d map[string]any) {
	if format, _ := d["format"].(string); format == "int-or-string" {
		d["type"] = []any{"string", "integer"}
		delete(d, "format")
	}
	if d["properties"] != nil && d["additionalProperties"] == nil {
		d["additionalProperties"] = false
	}
}

// used returns the definitions that one needs, itself included.
func used(all map[string]map[string]any, name string) map[string]any {
	out := map[string]any{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, is := v["$ref"].(string); is {
				to := ref[strings.LastIndexByte(ref, '/')+1:]
				if out[to] == nil && all[to] != nil {
					out[to] = all[to]
					walk(all[to])
				}
			}
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	out[name] = all[name]
	walk(all[name])
	return out
}
