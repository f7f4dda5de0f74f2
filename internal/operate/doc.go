// Package operate is the verbs of the node binary that ask a running node, and have it do something, over its admin
// interface (kith run --admin).
package operate

import "io"

// Console is where a verb prints.
type Console struct {
	Out io.Writer // results; what peers have named has no control characters there
}

// Verbs are the commands, for the parser of the command line.
type Verbs struct {
	Status      Status      `cmd:"" help:"Say where a running node stands; exit code 1 when it is not ready."`
	Members     Members     `cmd:"" help:"List the members as a running node sees them."`
	Shards      Shards      `cmd:"" help:"List the types of a running node, or where the shards of one live."`
	Explain     Explain     `cmd:"" help:"Say what a node waits for, who holds up convergence, what the resolver decided."`
	Events      Events      `cmd:"" help:"Print what happens at a running node until it ends."`
	Leave       Leave       `cmd:"" help:"Have a running node leave its cluster gracefully."`
	Drain       Drain       `cmd:"" help:"Move everything away from a running node, which stays a member."`
	Move        Move        `cmd:"" help:"Move a shard to another node by hand."`
	Down        Down        `cmd:"" help:"Mark a member as gone, whose process is dead."`
	Rebalancing Rebalancing `cmd:"" help:"Pause or resume the balance of the whole cluster."`
}
