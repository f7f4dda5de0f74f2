// Help: what flags say of themselves where a line of source has no room for it.

package main

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/kith-io/kith/internal/lab/bootruns"
	"github.com/kith-io/kith/internal/lab/chaos"
	"github.com/kith-io/kith/internal/sim/scale"
	"github.com/kith-io/kith/internal/sim/storm"
)

// listed lists names.
func listed[T ~string](names []T) string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = string(n)
	}
	return strings.Join(all, ", ")
}

// texts are the variables of the tags.
var texts = kong.Vars{
	"stalls_help":    stallsHelp,
	"bootcases_help": "Only these cases, with commas in between; all: " + listed(bootruns.Cases) + ".",
	"within_help":    "So long after the last of a fresh start is Up its shards must be within a tenth of the mean.",
	"nested_help": "One ask of so many is passed on: the entity asks one of another shard before it answers; 0: none. " +
		"With --mode=blocking.",
	"link_help": "What the link of each process carries each way, as tc writes it; network namespaces, which need root, " +
		"and the tools ip, nft and tc. Without it: loopback.",
	"stall_help": "A node that stays is stopped (SIGSTOP) for so long during each restart, each time another one.",
	"state_help": "Padding of the state that each entity carries through its moves, beside a count: bytes, or as 1KiB, " +
		"up to 1MiB; 0: no state.",
	"workers_help": "Seeds run at a time; 0: one per processor.",
	"first_help":   "The first seed; the others follow. With --seeds=1 it replays a failure. 0: one is drawn and printed.",
	"without_help": "Leave out what seeds draw beyond their mix: " + strings.Join(storm.Draws(), ", ") +
		". Without all of it they are what they were before it was drawn.",
	"parts_help": "What to measure, with commas in between: " + listed(scale.Parts()) +
		" (docs/evidence/reliability.md says what each is). None: all of them; above 3000 nodes quiet, one and crash.",
	"crashes_help": "Crashes and kills to measure, at most 100000; 0: 100, above 300 nodes 50, above 3000 one.",
	"build_help":   "Make the cluster at once instead of having it join; above 3000 nodes it is, unless join is a part.",
	"hours_help":   "Virtual hours of the part loss, more than 0 and at most 1000.",
	"net_help": "How faults get into the network: netns (a namespace for each node, needs root, ip and nft), proxy " +
		"(loopback), or auto: the first where it is permitted.",
	"only_help": "Only these faults, with commas in between; all: " + listed(chaos.Named()),
	"chaos_moves_help": "In place of drawn rounds: a shard of slow entities moves in each, and a fault (kill, pause, " +
		"cut, reset: see --only) hits each participant in each phase once.",
	"cases_help": "Only these cases, with commas in between: " + listed(chaos.NamedCases()) + ". None: all up to " +
		string(chaos.Cases[len(chaos.Cases)-1]) + "; with --mode=session those that it is about.",
	"chaos_session_help": "Where nodes hold session leases: file, etcd (a server of this run's own, for which " +
		"bin/lab-leases is needed), off, or drawn: files in one seed of four.",
	"chaos_tenure_help": "With how many seats nodes have tenures: 3, 5, 7, off, or drawn: as many as there are nodes, " +
		"one less if that is even, in one seed of four.",
	"mode_help": "What frees a lost owner's shards: takeover, session: nodes hold session leases, or tenure: a quorum " +
		"of the seats vouches for them.",
	"sessionlease_help": "Where nodes hold sessions: file, or etcd: a server of this run's own, for which " +
		"bin/lab-leases is needed (make build-leases).",
	"partition_help": "Cut real node processes in two under traffic; measure when each side stops, decides, takes over.",
	"partcases_help": "Only these cases, with commas in between; all: " + listed(chaos.PartitionCases) + ".",
	"partstable_help": "How long nothing may change before the resolver decides, 1s to 1m; 0: the default, 5.5s up to " +
		"5 members.",
	"trialout_help": "Folder for timelines, what verbs printed, and, after a failure, all logs.",
	"break_help":    "Switch off one rule of the protocol and print the shortest way to what goes wrong without it.",
	"states_help": "Most states of one run, 1 to 100000000; each takes about 60 bytes. A run that has more is not " +
		"complete.",
	"rounds_help": "How often an eighth of the nodes freezes in the part frozen, 1 to 100000.",
}
