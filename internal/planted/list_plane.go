// Planted bugs of what a node does with a message beyond the fast path: driver and simulator ride the same, so storms
// find those that lose a message or leave a shard without an answer.

package main

var planeBugs = []bug{
	{
		Name: "parked-dropped-where-there-is-no-room", Seeds: 60,
		File: "internal/plane/drain.go",
		Old:  "		case Sent:\n			s.PopParked()\n",
		New:  "		case Sent, NoRoom:\n			s.PopParked()\n",
	},
	{
		Name: "parked-lost-with-a-home-that-is-gone", Seeds: 60,
		File: "internal/plane/drain.go",
		Old:  "		case NoHome:\n			s.Reset()\n",
		New:  "		case NoHome:\n			s.PopParked()\n			s.Reset()\n",
	},
	{
		Name: "large-message-comes-back-after-its-envelope", Seeds: 60,
		File: "internal/flow/large.go",
		Old:  "	LargeSent:   {-1, -1, -1, -1,",
		New:  "	LargeSent:   {-1, -1, -1, int8(LargeWaits),",
	},
	{
		// It is refused there, late, and its sender is told: no promise is broken.
		Name: "large-message-keeps-its-payload-at-the-old-home", Package: "./internal/plane", Run: "TestLargeForward",
		File: "internal/plane/large.go",
		Old:  "	if l.at != at || l.term != term || l.epoch != epoch {\n",
		New:  "	if l.at == (peer.ID{}) {\n",
	},
	{
		Name: "large-message-holds-an-open-slot-and-nobody-drains-it", Seeds: 60,
		File: "internal/plane/route.go",
		Old:  "	if open {\n		return Flush, nil\n	}\n",
		New:  "	_ = open\n",
	},
	{
		Name: "large-message-given-up-like-a-small-one", Seeds: 60,
		File: "internal/plane/unsent.go",
		Old:  "		return UnsentLarge\n",
		New:  "		return UnsentTell\n",
	},
	{
		Name: "a-dead-end-stays-open", Seeds: 60,
		File: "internal/plane/route.go",
		Old:  "	if Leads(s, at, term, epoch) {\n		s.Reset()\n	}\n",
		New:  "",
	},
	{
		Name: "what-waits-too-long-waits-on", Seeds: 60,
		File: "internal/plane/route.go",
		Old:  "	s.Expire(now, fail)\n",
		New:  "	_, _ = now, fail\n",
	},
	{
		Name: "a-slot-is-looked-after-once", Seeds: 60,
		File: "internal/plane/agenda.go",
		Old:  "	clear(l.in)\n",
		New:  "",
	},
	{
		Name: "large-message-lost-with-a-home-that-is-left", Package: "./internal/plane", Run: "TestAgain",
		File: "internal/plane/large.go",
		Old:  "(WrongHome(why) || why == route.PeerLost && moved)",
		New:  "why == route.PeerLost && moved",
	},
	{
		// The node's own next answer heals it in storms, where shards are asked for often.
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
		Name: "waiter-used-again-under-the-same-number", Seeds: 60,
		File: "internal/plane/ask.go",
		Old:  "	a.generation++\n",
		New:  "",
	},
	{
		Name: "late-answer-taken", Seeds: 60,
		File: "internal/plane/ask.go",
		Old:  "	case s != Waiting(corr):\n		return Late\n",
		New:  "	case s != Waiting(corr) && s != Waiting(corr).Settled():\n		return Late\n",
	},
	{
		Name: "wheel-forgets-who-stood-behind-an-answered-ask", Seeds: 60,
		File: "internal/plane/wheel.go",
		Old:  "		h.slots[a.due%wheelSlots] = a.next\n",
		New:  "		h.slots[a.due%wheelSlots] = nil\n",
	},
	{
		Name: "ask-over-before-its-time", Seeds: 60,
		File: "internal/plane/wheel.go",
		Old:  "	return int64((d-1)/WheelTick) + 2\n",
		New:  "	return int64(d / WheelTick)\n",
	},
	{
		Name: "ask-of-a-later-turn-of-the-wheel-is-over-now", Seeds: 60,
		File: "internal/plane/wheel.go",
		Old:  "			if a.due <= tick {\n",
		New:  "			if a.due%wheelSlots <= tick%wheelSlots {\n",
	},
	{
		Name: "sleep-that-the-node-was-not-told-of-opens-the-gate", Package: "./internal/plane", Run: "TestGate",
		File: "internal/plane/gate.go",
		Old:  "	if untold {\n",
		New:  "	if untold && suspended {\n",
	},
	{
		Name: "refused-ask-is-reported", Seeds: 60,
		File: "internal/plane/bound.go",
		Old:  "	case flags&wire.FlagAsk != 0:\n",
		New:  "	case flags&wire.FlagAsk != 0 && flags&wire.FlagParked != 0:\n",
	},
	{
		Name: "limit-of-a-refused-ask-misread", Seeds: 60,
		File: "internal/plane/bound.go",
		Old:  "		limit = limit*10 + int(c-'0')\n",
		New:  "		limit = limit*10 + int(c)\n",
	},
	{
		Name: "refusals-without-their-limit", Seeds: 60,
		File: "internal/plane/refusals.go",
		Old:  "		if limits {\n			b = wire.AppendUvarint(b, uint64(e.Limit))\n		}\n",
		New:  "",
	},
}
