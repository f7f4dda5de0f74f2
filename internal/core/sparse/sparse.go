// Package sparse holds what is known of shards, at a price that follows how many of them are in use and not how many a
// type has: sets, and tables of values. It is pure.
package sparse
