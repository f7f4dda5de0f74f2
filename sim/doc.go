// Package sim is the test kit for users' entities: a cluster in one thread, on virtual time, over a network that can be
// broken, under checkers that watch the promises of the library at every step.
//
// A test builds a Cluster with New, registers its types, breaks the network and asks questions. One seed decides
// everything, so a failing test fails again. The stories in testdata, which this package's tests play, show what a
// cluster does in many situations.
package sim
