// Package stats holds the counters of a node as snapshots (Node.Stats): of its connections, of its links with each
// peer, of its control messages, of each type. It counts nothing itself. Counts are totals since the node's start
// unless a comment says that they are of now. A snapshot is the caller's.
package stats
