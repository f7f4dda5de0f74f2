// Package replicated keeps values that every node of a cluster holds: each node reads and changes its own copy without
// a wait, and copies that changed apart merge to the same value on every node, without a coordinator (delta CRDTs).
//
// Open one under the same name on every node. Handle.Get is one atomic load. Handle.Update changes this node's copy and
// returns at once (Local) or when enough members hold the change (From, Majority, All). docs/replicated.md says what a
// value costs, which one to take, and what none of them promises.
//
// Values are immutable: a method that changes one returns the changed value and leaves the other as it was. Their zero
// values are empty and ready. A node that changes one gives its identity, which Update hands in: one
// identity must never change two copies of a value at a time.
package replicated
