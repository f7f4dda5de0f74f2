// Package strategy decides where shards live: which region gets a shard that has no home, and which shards move for the
// sake of balance. A strategy is a pure value: it is given a View and answers, without clock, input or output, and the
// same answers to the same questions. Check puts the guard around one, which lets nothing through that the coordinator
// could not carry out; shard/strategytest is the suite that every strategy has to pass.
//
// Of every member that a strategy chooses from, this package says in one place whether it may be chosen (Region.Why),
// and when nothing may move for balance (View.Holds).
package strategy
