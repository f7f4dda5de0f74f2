// Package world runs whole clusters in one thread on virtual time over a hostile network.
//
// It is the twin of package driver: it steps the same node.Node, performs its effects in the same order, and uses the
// same flow, plane and entity values, so what passes here is what runs there. One seed decides everything: delays,
// losses, every choice of every node. The same seed gives the same trace, byte for byte.
//
// A World knows no rules beyond its own books (a ledger of messages, bounds, credit). It tells a Watcher everything at
// the moment at which it happens; package check is the one that there is. What drives a world stands above: package sim
// for tests of users' entities and for scripts, package storm for random faults. They start processes, break wires and
// let time pass by the verbs of World, Process and Net, and ask by the fields and methods of these. Nothing here is
// safe for concurrent use.
package world
