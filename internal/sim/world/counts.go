// Counts: how often a storm met what the data plane does beyond the fast path.

package world

// PlaneCounts says how often a storm met what a node does with a message beyond the fast path.
type PlaneCounts struct {
	Doubted   int `json:"doubted"`    // routes that were doubted because of refused tells
	DeadEnds  int `json:"dead_ends"`  // messages and drains with a route to a member that is forgotten
	LateHomes int `json:"late_homes"` // disclosed homes at such a member
	Stalled   int `json:"stalled"`    // drains that met a full link
	Expired   int `json:"expired"`    // messages that waited too long for a home

	Told     uint64 `json:"told"`           // refused tells of which their senders heard,
	InFlight uint64 `json:"told_in_flight"` // tells that their senders took for lost
	Untold   uint64 `json:"untold"`         // and those of which they may not have: they were no members any more

	Large        int `json:"large"`         // large messages accepted
	LargeRefused int `json:"large_refused"` // times that one went to the next home because its home was wrong,
	LargeMoved   int `json:"large_moved"`   // or was lost and another node is the home
	LargeFailed  int `json:"large_failed"`  // those with a transfer that ended, and the message with it
	LargeGivenUp int `json:"large_givenup"` // asks that nobody waited for any more

	LateAnswers  int `json:"late_answers"`  // answers of asks that nobody waited for any more
	ExpiredAsks  int `json:"expired_asks"`  // asks that were dropped because nobody waited for them any more
	AsksFull     int `json:"asks_full"`     // asks that found as many under way as may be
	Waited       int `json:"waited"`        // attempts that met an entity which was known to be full at another node,
	Forced       int `json:"forced"`        // and times that a receiver said so
	Kept         int `json:"kept"`          // envelopes that a closed gate kept,
	NoPlace      int `json:"no_place"`      // or refused because it kept enough
	QueueFull    int `json:"queue_full"`    // messages of a process itself that found its worker or loop full
	StopsBehind  int `json:"stops_behind"`  // stop orders that waited behind messages for a worker or loop
	AfterAbandon int `json:"after_abandon"` // messages for a host that its node had given up; no storm has one

	EndCounts
	CrashCounts
}

// EndCounts says what processes that ended, or lost a shard, left unhandled.
type EndCounts struct {
	Abandoned       int `json:"abandoned"`        // messages in mailboxes of processes that ended, or lost the shard,
	AbandonedQueued int `json:"abandoned_queued"` // own ones before workers and loops of those that ended,
	AbandonedParked int `json:"abandoned_parked"` // and parked ones
	LeftBehind      int `json:"left_behind"`      // handlers that waited for an answer when their node ended
	HandedOver      int `json:"handed_over"`      // messages that an owner did not work off, and gave to the next one
	Untaken         int `json:"untaken"`          // messages handed over that no owner began with
	StatesTaken     int `json:"states_taken"`     // states that the next instance has taken up
	StatesLost      int `json:"states_lost"`      // states that no next instance has got, as somebody knows
}

// CrashCounts says what entities that panicked left unhandled.
type CrashCounts struct {
	GaveUp      int `json:"gave_up"`      // entities that were given up after a panic,
	GaveUpWith  int `json:"gave_up_with"` // and messages that waited for them
	CrashedThen int `json:"crashed_then"` // messages that were refused because their entity rested or was given up
}

// Add adds another count.
func (c *PlaneCounts) Add(o *PlaneCounts) {
	c.Doubted += o.Doubted
	c.DeadEnds += o.DeadEnds
	c.LateHomes += o.LateHomes
	c.Waited += o.Waited
	c.Forced += o.Forced
	c.Stalled += o.Stalled
	c.Expired += o.Expired
	c.Told += o.Told
	c.Untold += o.Untold
	c.InFlight += o.InFlight
	c.Large += o.Large
	c.LargeRefused += o.LargeRefused
	c.LargeMoved += o.LargeMoved
	c.LargeFailed += o.LargeFailed
	c.LargeGivenUp += o.LargeGivenUp
	c.LateAnswers += o.LateAnswers
	c.ExpiredAsks += o.ExpiredAsks
	c.AsksFull += o.AsksFull
	c.Kept += o.Kept
	c.NoPlace += o.NoPlace
	c.QueueFull += o.QueueFull
	c.StopsBehind += o.StopsBehind
	c.AfterAbandon += o.AfterAbandon
	c.Abandoned += o.Abandoned
	c.AbandonedQueued += o.AbandonedQueued
	c.AbandonedParked += o.AbandonedParked
	c.LeftBehind += o.LeftBehind
	c.HandedOver += o.HandedOver
	c.Untaken += o.Untaken
	c.StatesTaken += o.StatesTaken
	c.StatesLost += o.StatesLost
	c.GaveUp += o.GaveUp
	c.GaveUpWith += o.GaveUpWith
	c.CrashedThen += o.CrashedThen
}
