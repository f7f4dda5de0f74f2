// Planted bugs of what a node does with a message beyond the fast path: driver and simulator ride the same, so storms
// find some. A home that is wrong or gone is rare while no shard moves, so those of its healing fall to tests.

package main

var planeBugs = []bug{
	{
		Name: "parked-dropped-where-there-is-no-room", Seeds: 60,
		File: "internal/plane/drain.go",
		Old:  "		case Sent:\n			s.PopParked()\n",
		New:  "		case Sent, NoRoom:\n			s.PopParked()\n",
	},
	{
		Name: "parked-lost-with-a-home-that-is-gone", Package: "./internal/plane", Run: "TestDrainStops",
		File: "internal/plane/drain.go",
		Old:  "		case NoHome:\n			s.Reset()\n",
		New:  "		case NoHome:\n			s.PopParked()\n			s.Reset()\n",
	},
	{
		Name: "large-message-goes-on-after-its-envelope", Package: "./internal/plane", Run: "TestAgain",
		File: "internal/plane/large.go",
		Old:  "	return !sent && before",
		New:  "	return before",
	},
	{
		Name: "large-message-lost-with-a-home-that-is-left", Package: "./internal/plane", Run: "TestAgain",
		File: "internal/plane/large.go",
		Old:  "(WrongHome(why) || why == route.PeerLost && moved)",
		New:  "why == route.PeerLost && moved",
	},
	{
		Name: "wrong-home-goes-on", Package: "./internal/plane", Run: "TestDoubts",
		File: "internal/plane/refusals.go",
		Old:  "	return why == route.NotOwner || why == route.NotRegistered || why == route.ShardStopping\n",
		New:  "	return why == route.NotRegistered\n",
	},
	{
		Name: "refusals-of-equal-reasons-twice-to-an-older-peer", Package: "./internal/plane", Run: "TestRefusalsAreSpoken",
		File: "internal/plane/refusals.go",
		Old:  "			merged[n-1].Count += e.Count\n			continue\n",
		New:  "			merged[n-1].Count += e.Count\n",
	},
	{
		Name: "refusals-without-their-limit", Seeds: 60,
		File: "internal/plane/refusals.go",
		Old:  "		if limits {\n			b = wire.AppendUvarint(b, uint64(e.Limit))\n		}\n",
		New:  "",
	},
}
