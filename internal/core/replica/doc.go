// Package replica keeps replicated values of one node as a machine that is stepped: it takes updates, tells other
// members of them, finds by digests what either side lacks, and counts the members that hold what a caller waits for.
// It knows values through a Kind alone (package replicated has them).
package replica
