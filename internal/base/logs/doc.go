// Package logs stands in front of the loggers that embedders give, so that a goroutine that logs waits for none of
// them: a bounded queue and one goroutine. A logger that stands still, as one that writes to a pipe which nobody reads,
// costs records, which are counted and reported once it goes on, and nothing else.
package logs
