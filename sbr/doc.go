// Package sbr decides which side of a broken cluster lives: the split brain resolver (MEM-10). It is a stepped value
// that sees membership views and gives orders to down members, to suspend this node, and to take or give back a lease.
//
// It is no part of what embedders may rely on, but for the types that package kith and its like lead to: the rest may
// change in any version (docs/compatibility.md).
package sbr
