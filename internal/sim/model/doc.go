// Package model holds the protocol of hand-off and coordinator take-over against every order of events in a small
// cluster: three nodes, one or two shards, a few messages, and faults at any step. It is a model of what
// docs/handoff.md describes, not of the code. The search is breadth-first, so a counterexample is a shortest one.
//
// A state is a flat value (state.go). An action (actions.go) is a choice of the scheduler, of the application or of a
// fault: a node reads a letter or a frame, handles a message, crashes. Each makes one step, in which a node also
// handles its letters to itself. Rules (config.go) can be switched off one by one, to see what they are there for.
//
// `make model` runs it.
package model
