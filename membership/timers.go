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
	timerWaiting  // this node is not Up yet: it says what it waits for
	timerCount
)

type timer struct {
	at time.Duration
	on bool
}

func (m *Machine) fire(i int) {
	switch i {
	case timerProbe:
		m.joining.askAgain()
	case timerSeed:
		m.forming.seedTimeout()
	case timerGiveUp:
		m.joining.giveUp()
	case timerJoinTimeout:
		m.joining.joinTimeout(m.Waiting())
	case timerForward:
		m.admission.admitForwarded()
	case timerHeartbeat:
		m.watch.heartbeat()
	case timerReaper:
		m.watch.reap()
	case timerLeader:
		m.leading.leaderTick()
	case timerGossip:
		m.exchange.gossipTick()
	case timerExtra:
		m.exchange.extraRound()
	case timerExit:
		m.leaving.sendExitDone()
	case timerOrphan:
		m.end(EndIsolated, m.self, "all who had been up in the cluster that this node joined have been downed")
	case timerExitEnd:
		m.leaving.exitEnd()
	case timerSeedCheck:
		m.others.askSeed()
	case timerAdmit:
		m.admission.admitAll()
	case timerWeaklyUp:
		m.dirty = true
	case timerPush:
		m.push = true
	case timerWaiting:
		m.tellWaiting()
	}
}
