// Package check holds a simulated world against the rules of the library, at every step, over all nodes.
//
// A Checker is a world's Watcher. It sees all nodes, knows what was done to the cluster, and never corrects anything:
// the trace of a run is the same under it. docs/contributing/storms.md lists the rules by their names. Core is the part
// that asks whether healthy members live on where the resolver's strategy obliges them to.
package check
