// Package sim runs whole clusters in one thread on virtual time over a hostile network, and watches them.
//
// It is the twin of package driver: it steps the same node.Node, performs its effects in the same order, and rides the
// same flow and entity values, so what passes here is what runs there. One seed decides everything: delays, losses,
// every choice of every node. The same seed gives the same trace, byte for byte.
//
// Three kinds of user meet here. A test of an embedder's own entities builds a Cluster with New, registers types,
// breaks the network and asks questions. A reviewer reads the scripts in testdata. Storm runs random clusters under
// random faults, each seed twice, under checkers that see all nodes at every step.
package sim
