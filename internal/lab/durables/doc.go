// Package durables is the storm of durable entities: clusters, stores, senders and faults that a seed draws, and what
// judges the history afterwards. make storm-durable runs it: docs/contributing/storms.md.
package durables
