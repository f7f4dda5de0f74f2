// Package partition runs a service as N instances in the cluster, each on another node, and sends messages to one of
// them, to the one of a key, or to all.
//
//	prices, err := partition.Open(node, partition.Config{Path: "market/prices", Instances: partition.Survives(2),
//		New: func(slot int, f kith.Fence) kith.Handler { return &prices{} }}) // on every node of the cluster
//	err = prices.TellAny(tick)         // the instance on this node, else one of the others
//	err = prices.Tell("EURUSD", tick)  // that of the key
//	answer, err := prices.Ask(ctx, "EURUSD", question)
//
// Where the instances are stands in a table that all nodes gossip; the leader changes it when all have seen it. How an
// instance goes from one node to another is a choice (Handoff): docs/partitions.md says what each guarantees. What has
// one owner for each key, and as many keys as there are, is an entity and no partition.
package partition
