// Package setup holds what a simulated cluster is made of: its network, its bounds, the settings of its nodes.
//
// Tests write sim.Config, sim.Network and so on, which are these types. The zero value of every field is its default.
//
// It is no part of what embedders may rely on, but for the types that package kith and its like lead to: the rest may
// change in any version (docs/compatibility.md).
package setup
