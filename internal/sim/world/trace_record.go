// What the trace records of views, events and effects: fields for the hash, words only when somebody reads.

package world

import (
	"fmt"
	"strings"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

func (t *trace) view(at time.Duration, node int, v *membership.View) {
	t.begin(at, node, opView)
	for _, n := range [...]uint64{v.Seq, v.ClusterID, v.Birth, v.Hash} {
		t.u64(n)
	}
	for _, m := range v.Members {
		t.id(m.ID)
		t.buf = append(t.buf, byte(m.Status))
		t.u64(uint64(m.UpNumber))
	}
	for _, id := range v.Unreachable {
		t.id(id)
	}
	t.id(v.Leader)
	if v.Converged {
		t.buf = append(t.buf, 1)
	}
	t.end()
}

func (t *trace) event(w *World, p *Process, e *membership.Event) {
	t.begin(w.Now, p.Index, opEvent)
	t.buf = append(t.buf, byte(e.Kind), byte(e.Member.Status), byte(e.Previous))
	t.id(e.Member.ID)
	t.id(e.Leader)
	t.str(e.Role)
	t.end()
	if t.text || w.OnEvent != nil {
		w.tell(p, "%s", w.EventText(e))
	}
}

// EventText prints an event as traces and scripts have it.
func (w *World) EventText(e *membership.Event) string {
	switch e.Kind {
	case membership.LeaderChanged:
		return fmt.Sprintf("%s %s", e.Kind, w.Name(e.Leader))
	case membership.RoleLeaderChanged:
		return fmt.Sprintf("%s %s %s", e.Kind, e.Role, w.Name(e.Leader))
	case membership.ConvergenceBlocked:
		text := fmt.Sprintf("%s for %v by", e.Kind, e.Convergence.For.Round(time.Second))
		for _, b := range e.Convergence.Blockers {
			text += " " + w.Name(b.Member.ID)
			for i, id := range b.Accusers {
				text += []string{" (unreachable for ", ", "}[min(i, 1)] + w.Name(id)
			}
			if len(b.Accusers) > 0 {
				text += ")"
			}
		}
		return text
	case membership.DuplicateCluster:
		return fmt.Sprintf("%s at %s", e.Kind, w.Name(peer.ID{Addr: e.Duplicate.Via}))
	case membership.SplitCluster:
		return fmt.Sprintf("%s with %s", e.Kind, w.Name(e.By))
	case membership.NotUpYet:
		return fmt.Sprintf("%s: %s", e.Kind, e.Waiting.For)
	case membership.NodeSuspended, membership.NodeResumed:
		return e.Kind.String() // the order itself stands beside it, with its reason
	case membership.SettingsDiffer, membership.FormingHeld, membership.ClusterFormed,
		membership.JoinPutOff:
		return fmt.Sprintf("%s: %s", e.Kind, e.Detail)
	case membership.MetadataChanged, membership.PartitionsChanged, membership.ConvergenceRestored:
		return e.Kind.String()
	case membership.MemberQuarantined:
		return fmt.Sprintf("%s %s by %s", e.Kind, w.Name(e.Member.ID), w.Name(e.By)) + because(e.Why)
	case membership.SelfSuspected:
		return fmt.Sprintf("%s %s", e.Kind, w.Name(e.Member.ID)) + because(e.Why)
	case membership.MemberUp:
		return fmt.Sprintf("%s %s (number %d)", e.Kind, w.Name(e.Member.ID), e.Member.UpNumber)
	case membership.MemberRemoved:
		return fmt.Sprintf("%s %s (was %s)", e.Kind, w.Name(e.Member.ID), e.Previous)
	}
	return fmt.Sprintf("%s %s", e.Kind, w.Name(e.Member.ID))
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

func (t *trace) host(w *World, p *Process, o *shard.HostOrder) {
	t.begin(w.Now, p.Index, opHost)
	t.u64(uint64(o.Type))
	t.u64(uint64(o.Shard))
	t.bytes(o.Fence[:])
	t.buf = append(t.buf, bit(o.Stop), bit(o.Abandon))
	t.end()
	if t.text || w.OnEvent != nil {
		verb := "host"
		switch {
		case o.Abandon:
			verb = "abandon"
		case o.Stop:
			verb = "stop"
		}
		w.tell(p, "%s %s under %s", verb, w.ShardName(o.Type, o.Shard), FenceName(o.Fence))
	}
}

func (t *trace) route(w *World, p *Process, r *shard.RouteChange) {
	t.begin(w.Now, p.Index, opRoute)
	t.u64(uint64(r.Type))
	t.u64(uint64(r.Shard))
	t.buf = append(t.buf, byte(r.State))
	t.id(r.Home)
	t.bytes(r.Fence[:])
	t.end()
	if !t.text && w.OnEvent == nil {
		return
	}
	switch r.State {
	case shard.RouteLocal:
		w.tell(p, "route %s: here", w.ShardName(r.Type, r.Shard))
	case shard.RouteRemote:
		w.tell(p, "route %s: at %s", w.ShardName(r.Type, r.Shard), w.Name(r.Home))
	case shard.RouteMoving:
		w.tell(p, "route %s: leaves %s", w.ShardName(r.Type, r.Shard), w.Name(r.Home))
	default:
		w.tell(p, "route %s: unknown", w.ShardName(r.Type, r.Shard))
	}
}

var shardEventNames = map[shard.EventKind]string{shard.CoordinatorStarted: "coordinator collects reports of",
	shard.CoordinatorReady: "coordinator ready for", shard.CoordinatorStopped: "coordinator stopped for",
	shard.ShardAllocated: "allocated", shard.ShardReleased: "released", shard.StaleRefused: "refused stale",
	shard.MoveBegan: "move began", shard.MoveMarked: "all have marked the move",
	shard.MoveHandedOver: "handed over the rest",
	shard.MoveDone:       "move done", shard.MoveAborted: "move given up",
	shard.StrategyFault: "strategy is wrong",
	shard.MoveUntaken:   "the rest is not taken", shard.MoveReturned: "move came back"}

func (t *trace) shard(w *World, p *Process, e *shard.Event) {
	t.begin(w.Now, p.Index, opShard)
	t.buf = append(t.buf, byte(e.Kind))
	t.u64(uint64(e.Type))
	t.u64(uint64(e.Shard))
	t.u64(uint64(e.Term))
	t.id(e.Home)
	t.bytes(e.Fence[:])
	t.end()
	if !t.text && w.OnEvent == nil {
		return
	}
	var b strings.Builder
	b.WriteString(shardEventNames[e.Kind])
	switch e.Kind {
	case shard.CoordinatorStarted, shard.CoordinatorReady, shard.CoordinatorStopped:
		fmt.Fprintf(&b, " %s, term %d", w.TypeName(e.Type), e.Term)
	case shard.ShardAllocated:
		fmt.Fprintf(&b, " %s to %s under %s", w.ShardName(e.Type, e.Shard), w.Name(e.Home), FenceName(e.Fence))
	case shard.ShardsWait:
		fmt.Fprintf(&b, "%d shards of %s wait for %s", e.Shards, w.TypeName(e.Type), w.Name(e.Home))
	case shard.ShardReleased:
		fmt.Fprintf(&b, " %s", w.ShardName(e.Type, e.Shard))
	case shard.StrategyFault:
		fmt.Fprintf(&b, " about %s, %d times: %v", w.TypeName(e.Type), e.Shards, e.Err)
	case shard.MoveUntaken:
		fmt.Fprintf(&b, " of %s, term %d: %v", w.ShardName(e.Type, e.Shard), e.Term, e.Err)
	default:
		fmt.Fprintf(&b, " of %s, term %d", w.ShardName(e.Type, e.Shard), e.Term)
	}
	w.tell(p, "%s", b.String())
}

// tell gives one line about a process to the text of the trace and to a script.
func (w *World) tell(p *Process, format string, args ...any) {
	if !w.trace.text && w.OnEvent == nil {
		return
	}
	line := fmt.Sprintf(format, args...)
	if w.trace.text {
		w.trace.line(w.Now, p.Index, "%s", line)
	}
	if w.OnEvent != nil {
		w.OnEvent(p, line)
	}
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// FenceName prints term and epoch: the birth is the same everywhere.
func FenceName(f route.Fence) string { return fmt.Sprintf("%d.%d", f.Term(), f.Epoch()) }
