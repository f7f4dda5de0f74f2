// Planted bugs of the flight record: inputs that are left out or in another order, rings that keep the wrong part,
// replays that notice nothing.

package main

// everyRecord replays the records of all processes of storms.
const everyRecord = "TestRecordsReplay"

var flightBugs = []bug{
	{
		Name: "ticks-are-not-recorded", Package: "./internal/flight", Run: "TestRingIsBounded",
		In:   "internal/flight.Node.Tick",
		Drop: "r.verb",
	},
	{
		Name: "frames-are-not-recorded", Package: "./internal/storm", Run: everyRecord,
		In:   "internal/flight.Node.Handle",
		Drop: "r.frame",
	},
	{
		Name: "commands-are-not-recorded", Package: "./internal/flight", Run: "TestOwnDetector",
		In:  "internal/flight.Node.Do",
		Old: "cmd = r.command(now, cmd)",
		New: "_ = r.command",
	},
	{
		Name: "input-that-does-not-fit-leaves-no-gap", Package: "./internal/flight", Run: "TestInputThatDoesNotFit",
		In:  "internal/flight.recorder.frame",
		Old: "r.gap = true",
		New: "",
	},
	{
		Name: "frame-has-no-age", Package: "./internal/flight", Run: "TestGoldenEntries",
		In:  "internal/flight.recorder.frame",
		Old: "int64(now-arrived)",
		New: "0*int64(now-arrived)",
	},
	{
		Name: "numbers-of-peers-outlive-their-stretch", Package: "./internal/storm", Run: everyRecord,
		In:  "internal/flight.recorder.drained",
		Old: "clear(r.ids)",
		New: "",
	},
	{
		Name: "ring-keeps-the-oldest", Package: "./internal/flight", Run: "TestRingIsBounded",
		In:  "internal/flight.recorder.drained",
		Old: "if r.old = r.cur; r.gap {",
		New: "if len(r.old.entries) == 0 {\n\t\tr.old = r.cur\n\t}\n\tif r.gap {",
	},
	{
		Name: "state-counts-for-nothing-in-the-ring", Package: "./internal/flight", Run: "TestStateCountsInTheRing",
		In:  "internal/flight.recorder.drained",
		Old: "len(c.state)+len(c.entries) < r.limit",
		New: "len(c.entries) < r.limit",
	},
	{
		Name: "stretches-in-the-wrong-order", Package: "./internal/flight", Run: "TestRingIsBounded",
		In:  "internal/flight.Node.Record",
		Old: "[]stretch{r.old, r.cur}",
		New: "[]stretch{r.cur, r.old}",
	},
	{
		Name: "record-has-no-seed", Package: "./internal/storm", Run: everyRecord,
		In:  "internal/flight.Node.Record",
		Old: "cfg := r.cfg",
		New: "cfg := r.cfg\n\tcfg.Seed = 0",
	},
	{
		Name: "answers-of-strategies-are-not-recorded", Package: "./internal/storm", Run: everyRecord,
		In:  "internal/flight.recorder.answered",
		Old: "if !r.on() {",
		New: "if r.on() {",
	},
	{
		Name: "replay-does-not-look-at-the-digest", Package: "./internal/flight", Run: "TestReplayDiverges",
		In:  "internal/flight.player.run",
		Old: "sum != e.sum",
		New: "sum == 0 && e.sum != 0",
	},
	{
		Name: "replay-does-not-look-at-the-state", Package: "./internal/flight", Run: "TestReplayDiverges",
		In:  "internal/flight.player.begin",
		Old: "string(state) != string(s.state)",
		New: "len(state) == 0",
	},
	{
		Name: "digest-does-not-look-into-mail", Package: "./internal/flight", Run: "TestDigest$",
		In:  "internal/flight.digest.mail",
		Old: "d.number(xxhash.Sum64(body[:len(body)-n]) + uint64(n))",
		New: "d.number(uint64(len(body)) + uint64(n))",
	},
	{
		Name: "damaged-record-is-read", Package: "./internal/flight", Run: "TestDamagedFiles",
		In:  "internal/flight.readSection",
		Old: "h.Sum64() != binary.LittleEndian.Uint64(sum[:])",
		New: "h.Sum64() == 0 && sum[0] == 0",
	},
	{
		Name: "oldest-records-stay", Package: "./internal/driver", Run: "TestFlightRecordsAreBounded",
		In:  "internal/driver.storeFlight",
		Old: "old[:max(0, len(old)-flightFiles)]",
		New: "old[min(flightFiles, len(old)):]",
	},
	{
		Name: "state-has-what-was-asked-of-it", Package: "./internal/storm", Run: everyRecord,
		In:  "internal/flight.scratch",
		Old: "\"courier.Effects\": true, \"fd.forecast\": true",
		New: "\"courier.Effects\": true",
	},
}
