// History: the newest events of a node, kept for readers that come later.

package admin

import (
	"context"
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
				h.add(happened{At: time.Now(), Kind: e.Kind.String(), Grade: gradeOf(e.Kind), Text: e.String()})
			case e.Missed:
				h.add(happened{At: time.Now(), Kind: "missed", Grade: gradeBad, Text: "more happened than is kept"})
			}
		}
	}()
	go func() {
		for e := range n.ShardEvents(context.Background()) {
			if grade, kept := gradeOfShard(e.Kind); kept {
				h.add(happened{At: e.At, Kind: e.Kind.String(), Grade: grade, Text: e.String()})
			}
		}
	}()
}

func gradeOf(k kith.EventKind) string {
	switch k {
	case kith.UnreachableMember, kith.MemberDowned, kith.MemberQuarantined, kith.ConvergenceBlocked, kith.SelfSuspected,
		kith.TwinCluster, kith.SplitCluster, kith.SettingsDiffer, kith.FormingHeld, kith.NodeSuspended, kith.NotUpYet,
		kith.JoinPutOff:
		return gradeBad
	case kith.MemberUp, kith.ReachableMember, kith.ConvergenceRestored, kith.NodeResumed,
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
