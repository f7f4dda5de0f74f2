// Snapshot: what a dashboard shows of one node, in one answer of bounded size.

package admin

import (
	"context"
	"errors"
	"sort"
	"time"

	"github.com/kith-io/kith"
)

// Bounds of a snapshot, beside maxPeers and maxHistory.
const (
	maxMembers   = 256
	maxTypes     = 8
	maxParts     = 64
	maxDecisions = 16
	lookTime     = 2 * time.Second // for a node to answer
	surveyTime   = time.Second     // for all members to say what they have of a type
)

var errNoType = errors.New("the type is not registered there")

// snapshot is the answer of GET /v1/snapshot: one node as it sees itself and its cluster.
type snapshot struct {
	At        time.Time   `json:"at"` // on this node's clock
	Uptime    float64     `json:"uptime_s"`
	Health    health      `json:"health"`
	Total     int         `json:"total"`   // members
	Members   members     `json:"members"` // the first of them, those in trouble before the others
	Held      convergence `json:"convergence"`
	Peers     peers       `json:"peers"`
	Types     []typeState `json:"types"` // the first of them
	Parts     partitions  `json:"partitions"`
	Rates     *rates      `json:"rates,omitempty"`
	Decisions []decision  `json:"decisions"` // the newest, oldest first
	Events    []happened  `json:"events"`    // the newest, oldest first
}

// typeState is what one type has on this node.
type typeState struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"` // entities, singleton, daemons or pool
	Shards   uint32 `json:"shards"`
	Hosted   int    `json:"hosted"`   // shards that live here
	Stopping int    `json:"stopping"` // of them, those that are being stopped
	Entities uint64 `json:"entities"`
	Parked   int64  `json:"parked"`        // bytes of messages that wait for the home of a shard
	Mailbox  uint64 `json:"mailbox_bytes"` // bytes of messages that wait for entities here
}

// local is the node of this process as a source of snapshots and reports.
type local struct {
	node    *kith.Node
	meter   *meter
	history *history
}

func (l *local) look(ctx context.Context) (*snapshot, error) {
	n, at := l.node, time.Now()
	stats, h, v := n.Stats(), n.Health(), n.View()
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	s := &snapshot{At: at, Uptime: stats.Uptime.Seconds(), Health: healthOf(h),
		Total: len(v.Members), Members: troubledFirst(v), Held: convergence{Blockers: []blocker{}},
		Peers: peersOf(stats.Transport.Links, suspicions(ctx, n)), Types: []typeState{},
		Parts: partitionsOf(v, maxParts), Rates: l.meter.look(at, &stats),
		Decisions: decisionsOf(n), Events: l.history.all()}
	s.Members.Outages, s.Members.Tenure = outagesOf(h.Outages), tenureOf(stats.Suspension.Tenure)
	if c, err := n.Convergence(ctx); err == nil {
		s.Held = convergenceOf(c)
	}
	s.Decisions = s.Decisions[max(0, len(s.Decisions)-maxDecisions):]
	for i := range stats.Types[:min(len(stats.Types), maxTypes)] {
		t := &stats.Types[i]
		s.Types = append(s.Types, typeState{t.Name, t.Kind, t.Shards, t.Hosted, t.Stopping, t.Entities, t.ParkedBytes,
			t.MailboxBytes})
	}
	return s, nil
}

func (l *local) report(ctx context.Context, name string) (*report, error) {
	for _, r := range l.node.Regions() {
		if r.Type().Name != name {
			continue
		}
		rep, err := r.Report(ctx)
		if err != nil {
			return nil, err
		}
		out := reportOf(&rep, false)
		return &out, nil
	}
	return nil, errNoType
}

// troubledFirst is the members of a view, bounded: first those that are not plainly up, then the node itself.
func troubledFirst(v *kith.View) members {
	m := membersOf(v)
	rank := func(o *member) int {
		switch {
		case o.Status != kith.Up || !o.Reachable:
			return 0
		case o.ID == m.Self:
			return 1
		}
		return 2
	}
	sort.SliceStable(m.Members, func(i, k int) bool { return rank(&m.Members[i]) < rank(&m.Members[k]) })
	m.Members = m.Members[:min(len(m.Members), maxMembers)]
	return m
}
