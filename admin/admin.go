// Package admin serves what a node knows over HTTP, for people, probes and scripts: members, shards, moves, events,
// health, statistics; and, to clients with the token, leave and down. What it serves is described by an OpenAPI
// document (GET /openapi.json).
package admin

import (
	"net/http"

	"github.com/kith-io/kith"
)

// Start validates cfg, binds the listener and serves. It does not wait for the node to be Up: what it says of one that
// is not is what somebody wants to know. Close ends it; it does not end with the node, so that a probe has its answer.
func Start(node *kith.Node, cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return open(node, cfg, usual)
}

// open is Start with a valid configuration, and with limits.
func open(node *kith.Node, cfg Config, most limits) (*Server, error) {
	orFree := cfg.Listen == ""
	cfg, k := cfg.withDefaults(), &keeper{counts: newCounters(most.spare)}
	l, err := bind(cfg.Listen, orFree)
	if err != nil {
		return nil, err
	}
	return serve(l, cfg, most, k, func() http.Handler { return handlerOf(node, cfg, most.write, k) }), nil
}
