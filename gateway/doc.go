// The package and what it is for.

// Package gateway lets programs outside of a cluster ask and tell its entities, over HTTP, in any language. A Gateway
// is an http.Handler on a node:
//
//	POST /v1/ask/{type}/{id}     asks the entity id; the body is the message, that of the answer the reply
//	POST /v1/tell/{type}/{id}    tells it; 202: accepted
//	GET  /v1/openapi.json        describes the types that are exposed
//
// Nothing is exposed that Config.Types does not list. docs/gateway.md has statuses, headers and bounds.
package gateway
