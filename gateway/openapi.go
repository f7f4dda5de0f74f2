// The OpenAPI document, made of the types that are exposed.

package gateway

import (
	"encoding/json"
	"maps"
	"net/url"
)

// object is one of JSON.
type object = map[string]any

// document describes the calls of a configuration.
func document(c *Config) ([]byte, error) {
	paths := object{}
	for i := range c.Types {
		t := &c.Types[i]
		name := url.PathEscape(t.Name)
		if t.Ask {
			paths["/v1/ask/"+name+"/{id}"] = object{"post": operation(c, t, true)}
		}
		if t.Tell {
			paths["/v1/tell/"+name+"/{id}"] = object{"post": operation(c, t, false)}
		}
	}
	return json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info":    object{"title": "kith gateway", "version": "1"},
		"paths":   paths,
		"components": object{"schemas": object{"Failure": object{
			"type": "object", "required": []string{"error", "text", "may_have_run"},
			"properties": object{
				"error": object{"type": "string"}, "kind": object{"type": "string"}, "text": object{"type": "string"},
				"may_have_run": object{"type": "boolean", "description": "whether the message may have been handled"},
			},
		}}},
	}, "", "  ")
}

// operation describes one call.
func operation(c *Config, t *Type, ask bool) object {
	text := object{"type": "string"}
	parameters := []object{
		{"name": "id", "in": "path", "required": true, "schema": object{"type": "string", "minLength": 1, "maxLength": 1024}},
		{"name": TimeoutHeader, "in": "header", "schema": text,
			"description": "how long the call may take, at most " + c.MaxTimeout.String() + "; else " + c.Timeout.String()},
		{"name": "timeout", "in": "query", "schema": text, "description": "the same"},
	}
	if ask && t.Once != nil {
		parameters = append(parameters, object{"name": KeyHeader, "in": "header",
			"schema":      object{"type": "string", "minLength": 1, "maxLength": MaxKey},
			"description": "asks with one key have their effect once"})
	}
	for _, h := range c.Headers {
		parameters = append(parameters, object{"name": h, "in": "header", "schema": text})
	}
	failed := func(what string) object {
		return object{"description": what, "headers": object{RanHeader: object{"schema": object{"type": "boolean"}}},
			"content": object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Failure"}}}}
	}
	responses := object{
		"400": failed("the request is wrong, or the entity says so"), "403": failed("not allowed"),
		"404":     failed("no such path, or the entity says so"),
		"413":     failed("the message is too large"),
		"503":     failed("nothing was done; try again after Retry-After"),
		"504":     failed("no answer; it is not known whether the message was handled"),
		"default": failed("another error"),
	}
	if ask {
		responses["200"] = object{"description": "the reply", "content": content(t.MediaType, t.Reply)}
	} else {
		responses["202"] = object{"description": "accepted"}
	}
	o := object{"parameters": parameters, "responses": responses,
		"requestBody": object{"content": content(t.MediaType, t.Message)}}
	if t.Doc != "" {
		maps.Copy(o, object{"description": t.Doc})
	}
	return o
}

// content describes a body.
func content(media string, schema json.RawMessage) object {
	if len(schema) == 0 {
		return object{media: object{}}
	}
	return object{media: object{"schema": schema}}
}
