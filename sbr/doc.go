// Package sbr decides which side of a broken cluster lives: the split brain resolver (MEM-10). It is a stepped value
// that sees membership views and gives orders to down members, to suspend this node, and to take or give back a lease.
package sbr
