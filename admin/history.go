// History: the newest events of a node, kept for readers that come later, and how they are worded for people.

package admin

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/kith-io/kith"
)

// maxHistory is how many events are kept.
const maxHistory = 64

// The grades of what has happened.
const (
	gradeNews = "news"
	gradeGood = "good"
	gradeBad  = "bad"
)

// happened is one event that is over.
type happened struct {
	Number uint64    `json:"number"` // from 1 on: what is missing between two was dropped
	At     time.Time `json:"at"`     // on this node's clock
	Kind   string    `json:"kind"`
	Grade  string    `json:"grade"` // news, good or bad
	Text   string    `json:"text"`
	Words  string    `json:"words"`            // the same for people
	Reason string    `json:"reason,omitempty"` // why, if it is known
}

// history keeps the newest events, oldest first.
type history struct {
	mu   sync.Mutex
	n    uint64
	list []happened
}

func (h *history) add(e happened) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n++
	e.Number = h.n
	if len(h.list) == maxHistory {
		h.list = append(h.list[:0], h.list[1:]...)
	}
	h.list = append(h.list, e)
}

// all returns a copy.
func (h *history) all() []happened {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]happened{}, h.list...)
}

// follow keeps what happens at a node until that has ended: two goroutines. Of single shards it keeps only what goes
// wrong with them, which is what somebody wants to read.
func (h *history) follow(n *kith.Node) {
	go func() {
		for e := range n.Events(context.Background()) {
			switch {
			case e.Kind != kith.Snapshot:
				h.add(happened{At: time.Now(), Kind: e.Kind.String(), Grade: gradeOf(&e), Text: e.String(),
					Words: wordsOf(&e), Reason: reasonOf(&e)})
			case e.Missed:
				h.add(happened{At: time.Now(), Kind: "missed", Grade: gradeBad, Text: "more happened than is kept",
					Words: "More happened than is kept"})
			}
		}
	}()
	go func() {
		for e := range n.ShardEvents(context.Background()) {
			if grade, kept := gradeOfShard(e.Kind); kept {
				h.add(happened{At: e.At, Kind: e.Kind.String(), Grade: grade, Text: e.String(),
					Words: shardWordsOf(&e), Reason: errorOf(e.Err)})
			}
		}
	}()
}

func gradeOf(e *kith.Event) string {
	switch e.Kind {
	case kith.MemberDowned:
		if e.Member.Cause == kith.CauseReplaced || e.Member.Cause == kith.CauseProvenDead {
			return gradeNews // its next process is here
		}
		return gradeBad
	case kith.UnreachableMember, kith.MemberQuarantined, kith.ConvergenceBlocked, kith.SelfSuspected,
		kith.DuplicateCluster, kith.SplitCluster, kith.SettingsDiffer, kith.FormingHeld, kith.NodeSuspended,
		kith.NotUpYet, kith.JoinPutOff:
		return gradeBad
	case kith.MemberUp, kith.ReachableMember, kith.ConvergenceRestored, kith.NodeResumed, kith.OutageOver,
		kith.ClusterFormed:
		return gradeGood
	}
	return gradeNews
}

func gradeOfShard(k kith.ShardEventKind) (grade string, kept bool) {
	switch k {
	case kith.ShardsWait, kith.MoveAborted, kith.MoveUntaken, kith.MoveReturned, kith.StrategyFault:
		return gradeBad, true
	case kith.CoordinatorReady:
		return gradeGood, true
	case kith.CoordinatorStarted, kith.CoordinatorStopped:
		return gradeNews, true
	}
	return "", false
}

// verbs say what a member did, or what became of it.
var verbs = map[kith.EventKind]string{
	kith.MemberJoined:               "joins the cluster",
	kith.MemberWeaklyUp:             "is up for now: not all members have seen it yet",
	kith.MemberUp:                   "is up",
	kith.MemberLeft:                 "leaves the cluster",
	kith.MemberExited:               "has handed over what lived there, and goes",
	kith.MemberDowned:               "is given up as dead",
	kith.UnreachableMember:          "does not answer",
	kith.ReachableMember:            "answers again",
	kith.MemberQuarantined:          "is not believed any more",
	kith.MemberPreparingForShutdown: "prepares for the shutdown of the whole cluster",
	kith.MemberReadyForShutdown:     "is ready for the shutdown of the whole cluster",
}

// wordsOf words an event of membership. Members stand in it by their identities.
func wordsOf(e *kith.Event) string {
	id := e.Member.ID.String()
	if verb := verbs[e.Kind]; verb != "" {
		return id + " " + verb + accusersOf(e)
	}
	switch e.Kind {
	case kith.MemberRemoved:
		if e.Last == kith.Exiting {
			return id + " has left the cluster"
		}
		return id + " is removed from the cluster"
	case kith.OutageOver:
		return fmt.Sprintf("The outage of %s is over after %v", id, e.For.Round(100*time.Millisecond))
	case kith.LeaderChanged:
		if e.Leader.IsZero() {
			return "The cluster has no leader"
		}
		return e.Leader.String() + " leads now"
	case kith.RoleLeaderChanged:
		if e.Leader.IsZero() {
			return "Nobody leads role " + e.Role
		}
		return e.Leader.String() + " leads role " + e.Role
	case kith.ConvergenceBlocked:
		return fmt.Sprintf("Not all members have seen one state for %v", e.Convergence.For.Round(time.Second))
	case kith.ConvergenceRestored:
		return "All members have seen one state again"
	case kith.NodeSuspended:
		return "This node handles no messages until others confirm it"
	case kith.NodeResumed:
		return fmt.Sprintf("This node handles messages again, after %v", e.For.Round(time.Millisecond))
	}
	return plain(e.Kind.String())
}

// accusersOf says which members do not hear the one that does not answer.
func accusersOf(e *kith.Event) string {
	if e.Kind != kith.UnreachableMember || e.View == nil {
		return ""
	}
	var by []string
	for _, a := range e.View.Accusations {
		if a.Subject == e.Member.ID && len(by) < maxAccusers {
			by = append(by, a.Observer.String())
		}
	}
	if len(by) == 0 {
		return ""
	}
	return ", says " + strings.Join(by, ", ")
}

// maxAccusers bounds the members that are named in one line.
const maxAccusers = 3

// shardWordsOf words an event of sharding that is kept.
func shardWordsOf(e *kith.ShardEvent) string {
	name := cmp.Or(e.Name, fmt.Sprintf("type %08x", uint32(e.Type)))
	switch e.Kind {
	case kith.CoordinatorStarted:
		return fmt.Sprintf("%s begins to coordinate %s", e.Home, name)
	case kith.CoordinatorReady:
		return fmt.Sprintf("%s coordinates %s", e.Home, name)
	case kith.CoordinatorStopped:
		return fmt.Sprintf("%s coordinates %s no more", e.Home, name)
	case kith.ShardsWait:
		return fmt.Sprintf("%d shards of %s wait: %s is lost", e.Shards, name, e.Home)
	case kith.MoveAborted:
		return fmt.Sprintf("Shard %d of %s stays at %s, its move to %s is given up", e.Shard, name, e.Home, e.To)
	case kith.MoveUntaken:
		return fmt.Sprintf("Shard %d of %s comes back: %s does not take it", e.Shard, name, e.To)
	case kith.MoveReturned:
		return fmt.Sprintf("Shard %d of %s lives at %s again", e.Shard, name, e.Home)
	case kith.StrategyFault:
		return fmt.Sprintf("The strategy of %s is wrong", name)
	}
	return plain(e.Kind.String())
}

// plain makes words of the name of a kind.
func plain(kind string) string {
	text := strings.ReplaceAll(kind, "-", " ")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func errorOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
