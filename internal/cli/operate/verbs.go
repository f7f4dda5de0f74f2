// The verbs, for the parser of the command line.

package operate

// Verbs are the commands, for the parser of the command line.
type Verbs struct {
	Status      Status      `cmd:"" help:"Say where a running node stands; exit code 1 when it is not ready."`
	Members     Members     `cmd:"" help:"List the members as a running node sees them."`
	Shards      Shards      `cmd:"" help:"List the types of a running node, or where the shards of one live."`
	Where       Where       `cmd:"" help:"Say where an entity lives, and what goes on there; exit code 1 when nowhere."`
	Data        Data        `cmd:"" help:"Say how values lie on the disks of the nodes: stores, disks, replicas of a key."`
	Explain     Explain     `cmd:"" help:"Say what a node waits for, who holds up convergence, what the resolver decided."`
	Events      Events      `cmd:"" help:"Print what happens at a running node until it ends."`
	Flight      Flight      `cmd:"" name:"flight-record" help:"Write the flight record of a running node to a file."`
	Top         Top         `cmd:"" help:"Show what nodes do, again and again: rates, latencies, shards."`
	Join        Join        `cmd:"" help:"Have a running node, or all of its cluster, go over to another cluster."`
	Dashboard   Dashboard   `cmd:"" help:"Serve one page that shows several running nodes."`
	Leave       Leave       `cmd:"" help:"Have a running node leave its cluster gracefully."`
	Drain       Drain       `cmd:"" help:"Move everything away from a running node, which stays a member."`
	Move        Move        `cmd:"" help:"Move a shard to another node by hand."`
	Down        Down        `cmd:"" help:"Mark a member as gone, whose process is dead."`
	Refound     Refound     `cmd:"" help:"Say that all lost members are dead, so that others get their seats (--tenure)."`
	Ask         Ask         `cmd:"" help:"Ask an entity, over a running node, and print its reply: needs the token."`
	Tell        Tell        `cmd:"" help:"Send an entity a message, over a running node: needs the token."`
	Rebalancing Rebalancing `cmd:"" help:"Pause or resume the balance of the whole cluster."`
}
