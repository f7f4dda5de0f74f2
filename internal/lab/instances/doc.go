// Package instances runs partitions on real processes: instances that are moved, nodes that join, leave and are killed,
// all under traffic, and the account of it by hand-off (PRT-4).
package instances
