// Package node composes the machines of one cluster node into one stepped value: membership first, then, if the view
// changed, sharding; no loops back within a step. Driver and simulator use it.
package node
