// Package scale measures a large simulated membership on virtual time: joins, crashes, sizes, bytes, false suspicions.
//
// It runs the machines of package membership on a plain network of its own, without data plane, checkers and trace, so
// that ten thousand nodes fit. One seed gives one result, but for the wall time and the memory. `make scale` prints it.
package scale
