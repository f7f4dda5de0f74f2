// Package cluster holds what a node knows of its cluster at one moment: a View of the members, each with its status, of
// which member holds which unreachable, the leader, and the metadata. Views are made by package membership and read by
// all others; here are the values, what may become of a status, and what is read off a list of members alone.
package cluster
