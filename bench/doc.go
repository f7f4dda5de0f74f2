// Package bench holds what loadgen measures with: workloads over a region, baselines over raw TCP, micro measures of
// the codec and the route, and the figures that come out of them.
//
// A figure means little alone: every ratio here divides by a baseline that was measured in the same run, and figures of
// several rounds are reported as medians.
package bench
