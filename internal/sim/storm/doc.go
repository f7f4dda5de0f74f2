// Package storm runs random clusters under random faults, each seed twice, under the checkers of package check.
//
// Run combines what the seeds found; its result depends on the seeds alone but for the wall time. `make storm` prints
// it, and docs/contributing/storms.md says what a seed draws.
package storm
