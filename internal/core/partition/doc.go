// Package partition is the partition table as a value: paths, how many instances each has, on which members they are,
// and which are being handed over; how two tables join, and what a leader makes of one when all members have seen it.
// The shapes that programmers meet are those of package cluster.
package partition
