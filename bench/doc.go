// Package bench holds what loadgen measures with: workloads over a region, baselines over raw TCP, micro measures of
// the codec and the route, and the figures that come out of them.
//
// A figure means little alone: every ratio here divides by a baseline that was measured in the same run, and figures of
// several rounds are reported as medians.
//
// It is no part of what embedders may rely on, but for the types that package kith and its like lead to: the rest may
// change in any version (docs/compatibility.md).
package bench
