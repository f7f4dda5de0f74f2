// Package hosting runs instances of partitions, and topics, in storms: packages partition and topic as they run on
// nodes, on the coroutines and the virtual time of simulated processes.
package hosting
