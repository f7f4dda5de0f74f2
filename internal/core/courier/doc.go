// Package courier carries control messages between two incarnations: numbered, acknowledged, resent, each delivered
// once and in order, however often the connections between them break. It is pure and knows nothing of what it carries;
// the composition tells it the members, and what it gives up on becomes a quarantine
// (docs/contributing/control-messages.md).
package courier
