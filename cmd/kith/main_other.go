// Where the system is no Unix there is no node binary.

//go:build !unix

package main

// The name is what the compiler reports, once, in place of what packages within lack.
func main() { kith_nodes_run_on_Linux_macOS_and_the_BSDs__elsewhere_use_package_sim_alone() }
