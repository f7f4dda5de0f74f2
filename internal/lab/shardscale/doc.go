// Package shardscale measures types of very many shards on real node processes, for lab scale-shards. It starts them,
// has them send, and counts what comes.
package shardscale
