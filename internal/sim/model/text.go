// Text: states and steps in words.

package model

import "fmt"

// letterNames are the kinds of letters, in their order.
var letterNames = []string{"ask-home", "home", "moving", "move", "stopped", "host", "started", "report?", "report",
	"transfer", "transfer-ack", "transfer-refused", "abort?", "aborted", "unpark", "confirmed", "confirm-owner?",
	"owner-confirmed", "leaves", "stop"}

var hostNames = []string{"nothing", "live", "moving", "stopping", "stopping"}

// letterText says what stands in a letter.
func letterText(l letter) string {
	text := letterNames[l.kind]
	switch l.kind {
	case homeIs, unpark:
		text += fmt.Sprintf(" at n%d under %s", l.at, fenceText(l.fence))
	case moveShard:
		text += fmt.Sprintf(" %s, at n%d under %s", fenceText(l.move), l.at, fenceText(l.fence))
	case moveOwner:
		text += fmt.Sprintf(" %s to n%d, markers of %v", fenceText(l.move), l.at, l.who)
	case stopped:
		text += fmt.Sprintf(" under %s", fenceText(l.fence)) + []string{"", ", and has what is left",
			fmt.Sprintf(", and n%d has what is left", l.at), fmt.Sprintf(", and n%d too has what is left", l.at)}[l.state]
	case hostShard, started, confirmed, transferAck, transferRefused:
		text += fmt.Sprintf(" under %s", fenceText(l.fence))
	case report:
		text += " " + hostNames[l.state] + []string{"", ", and it keeps what is left", ", and it has a transfer", "",
			fmt.Sprintf(", and it handed over to %v", l.who)}[l.at]
	case transfer:
		text += fmt.Sprintf(" %v", l.left.all())
		if l.left.count != 0 {
			text += fmt.Sprintf(" and %v", l.left.count)
		}
	case abortWanted, aborted:
		text += " " + fenceText(l.move)
	}
	return text
}

// frameText says what a frame is.
func frameText(f frame) string {
	switch f.kind {
	case marker:
		return fmt.Sprintf("the marker of move %s", fenceText(f.mark))
	case answer:
		return fmt.Sprintf("the answer to %v", f.m)
	}
	return fmt.Sprintf("message %v under %s", f.m, fenceText(f.mark))
}

// text says what an action is, before it happens.
func (c *Config) text(w *world, a action) string {
	h := &w.nodes[a.i].places[min(a.j, maxShards-1)].host
	p := &w.nodes[a.i].places[min(a.j, maxShards-1)].slot
	switch a.kind {
	case doSend:
		m := newMsg(int(a.i), int(w.nodes[a.i].sent))
		return fmt.Sprintf("n%d sends %v%s", a.i, m, c.kindText(m))
	case doHandle:
		return fmt.Sprintf("n%d handles %v", a.i, h.box.at[0])
	case doDrain:
		return fmt.Sprintf("n%d sends %v, which was parked: there is room on the link", a.i, p.parked.at[0])
	case doCarry:
		if p.large == begun {
			return fmt.Sprintf("n%d has all of the large message %v", p.home, p.parked.at[0])
		}
		return fmt.Sprintf("n%d sends the envelope of the large message %v", a.i, p.parked.at[0])
	case doExpire:
		return fmt.Sprintf("%v, parked at n%d, expires", p.parked.at[0], a.i)
	case doStop:
		return fmt.Sprintf("n%d sends the stop call to its entities", a.i)
	case doHandOver:
		if h.target == none {
			return fmt.Sprintf("n%d stops at its deadline and keeps %v: who was to take it is removed", a.i, h.box.all())
		}
		return fmt.Sprintf("n%d stops at its deadline and hands over %v to n%d", a.i, h.box.all(), h.target)
	case doFailAsk:
		return fmt.Sprintf("n%d fails at its deadline what a handler asks", a.i)
	case doEnd:
		return fmt.Sprintf("the entities of n%d have stopped", a.i)
	case doMove:
		return fmt.Sprintf("n%d begins to move%s to n%d", a.i, c.shardText(int(a.j)), a.t)
	case doCallOff:
		return fmt.Sprintf("n%d calls off the move%s", a.i, c.shardText(int(a.j)))
	case doLeave:
		return fmt.Sprintf("n%d is told to leave", a.i)
	case doReign:
		return fmt.Sprintf("n%d begins its reign anew, under the same term", a.i)
	case doGiveAway:
		return fmt.Sprintf("n%d gives%s away at a deadline", a.i, c.shardText(int(a.j)))
	}
	return c.faultText(w, a)
}

// faultText says the same of the surroundings.
func (c *Config) faultText(w *world, a action) string {
	switch a.kind {
	case doLearn:
		return fmt.Sprintf("n%d sees that n%d is removed", a.i, a.j)
	case doTakeover:
		return fmt.Sprintf("at n%d the takeover time of n%d is over", a.i, a.j)
	case doCrash:
		return fmt.Sprintf("n%d crashes", a.i)
	case doRestart:
		return fmt.Sprintf("n%d starts again, as a new member", a.i)
	case doSleep:
		return fmt.Sprintf("n%d falls asleep", a.i)
	case doWake:
		return fmt.Sprintf("n%d wakes up", a.i)
	case doRemove:
		return fmt.Sprintf("n%d has slept too long and is removed", a.i)
	case doRead:
		return fmt.Sprintf("n%d reads of n%d: %s", a.j, a.i, letterText(w.ctl[a.i][a.j].at[0])+c.shardText(
			int(w.ctl[a.i][a.j].at[0].shard)))
	case doRefuse:
		return fmt.Sprintf("n%d refuses what n%d hands over", a.j, a.i)
	case doLose:
		return fmt.Sprintf("what n%d had sent to n%d is lost with it", a.i, a.j)
	case doFrame:
		return fmt.Sprintf("n%d gets of n%d %s", a.j, a.i, frameText(w.dat[a.i][a.j].at[0]))
	case doWork:
		return fmt.Sprintf("the worker of n%d takes %s", a.i, frameText(w.work[a.i].at[0]))
	}
	return fmt.Sprintf("the data connection from n%d to n%d breaks, with what is on it", a.i, a.j)
}

// shardText names a shard where there are two.
func (c *Config) shardText(shard int) string {
	if c.Shards < 2 {
		return ""
	}
	return fmt.Sprintf(" shard %d", shard)
}

// kindText says what a message is, when it is no tell.
func (c *Config) kindText(m msg) string {
	switch {
	case c.large(m):
		return ", a large message"
	case c.nested(m):
		return ", an ask whose handler asks"
	case c.isAsk(m):
		return ", an ask"
	}
	return ""
}
