// Timers: the deadlines of a machine and what each does when it passes.

package membership

import "time"

// The deadlines of a machine. Those that passed fire in this order.
const (
	timerProbe       = iota // ask seeds again, or repeat the join
	timerSeed               // the time to look for a cluster is over: one may be formed
	timerGiveUp             // the contact did not answer the join
	timerJoinTimeout        // the whole join took too long
	timerForward            // a join was handed to the leader and nothing came of it
	timerHeartbeat
	timerReaper
	timerLeader
	timerGossip
	timerExtra // one of the two rounds in between
	timerExit  // repeat that the exit is done
	timerExitEnd
	timerPush // an eager push that had to wait
	timerSeedCheck
	timerWeaklyUp // this node has led without convergence for long
	timerAdmit    // joins wait to be admitted together
	timerOrphan   // what is left of a cluster without members has let others know
	timerCount
)

type timer struct {
	at time.Duration
	on bool
}

func (m *Machine) fire(i int) {
	switch i {
	case timerProbe:
		m.askAgain()
	case timerSeed:
		m.seedTimeout()
	case timerGiveUp:
		m.giveUp()
	case timerJoinTimeout:
		m.joinTimeout()
	case timerForward:
		m.admitForwarded()
	case timerHeartbeat:
		m.heartbeat()
	case timerReaper:
		m.reap()
	case timerLeader:
		m.leaderTick()
	case timerGossip:
		m.gossipTick()
	case timerExtra:
		m.extraRound()
	case timerExit:
		m.sendExitDone()
	case timerOrphan:
		m.end(EndIsolated, m.self, "all who had been up in the cluster that this node joined have been downed")
	case timerExitEnd:
		m.end(EndLeft, m.self, "no member confirmed the removal in time")
	case timerSeedCheck:
		m.askSeed()
	case timerAdmit:
		m.admitAll()
	case timerWeaklyUp:
		m.dirty = true
	case timerPush:
		m.push = true
	}
}

func (m *Machine) in(i int, d time.Duration) { m.timers[i] = timer{m.now + d, true} }

func (m *Machine) stop(i int) { m.timers[i].on = false }
