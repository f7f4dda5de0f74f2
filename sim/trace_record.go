// What the trace records of views, events and effects: fields for the hash, words only when somebody reads.

package sim

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

func (t *trace) event(w *world, p *proc, e *membership.Event) {
	t.begin(w.now, p.idx, opEvent)
	t.buf = append(t.buf, byte(e.Kind), byte(e.Member.Status), byte(e.Previous))
	t.id(e.Member.ID)
	t.id(e.Leader)
	t.str(e.Role)
	t.end()
	if t.text || w.onEvent != nil {
		w.tell(p, "%s", w.eventText(e))
	}
}

func (w *world) eventText(e *membership.Event) string {
	switch e.Kind {
	case membership.LeaderChanged:
		return fmt.Sprintf("%s %s", e.Kind, w.name(e.Leader))
	case membership.RoleLeaderChanged:
		return fmt.Sprintf("%s %s %s", e.Kind, e.Role, w.name(e.Leader))
	case membership.ConvergenceBlocked:
		text := fmt.Sprintf("%s for %v by", e.Kind, e.Convergence.For.Round(time.Second))
		for _, b := range e.Convergence.Blockers {
			text += " " + w.name(b.Member.ID)
			for i, id := range b.Accusers {
				text += []string{" (unreachable for ", ", "}[min(i, 1)] + w.name(id)
			}
			if len(b.Accusers) > 0 {
				text += ")"
			}
		}
		return text
	case membership.TwinCluster:
		return fmt.Sprintf("%s at %s", e.Kind, w.name(peer.ID{Addr: e.Twin.Via}))
	case membership.SplitCluster:
		return fmt.Sprintf("%s with %s", e.Kind, w.name(e.By))
	case membership.SettingsDiffer, membership.FormingHeld:
		return fmt.Sprintf("%s: %s", e.Kind, e.Detail)
	case membership.MetadataChanged, membership.ConvergenceRestored:
		return e.Kind.String()
	case membership.MemberQuarantined:
		return fmt.Sprintf("%s %s by %s", e.Kind, w.name(e.Member.ID), w.name(e.By)) + because(e.Why)
	case membership.SelfIndicted:
		return fmt.Sprintf("%s %s", e.Kind, w.name(e.Member.ID)) + because(e.Why)
	case membership.MemberUp:
		return fmt.Sprintf("%s %s (number %d)", e.Kind, w.name(e.Member.ID), e.Member.UpNumber)
	case membership.MemberRemoved:
		return fmt.Sprintf("%s %s (was %s)", e.Kind, w.name(e.Member.ID), e.Previous)
	}
	return fmt.Sprintf("%s %s", e.Kind, w.name(e.Member.ID))
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

func (t *trace) host(w *world, p *proc, o *shard.HostOrder) {
	t.begin(w.now, p.idx, opHost)
	t.u64(uint64(o.Type))
	t.u64(uint64(o.Shard))
	t.bytes(o.Fence[:])
	t.buf = append(t.buf, bit(o.Stop), bit(o.Abandon))
	t.end()
	if t.text || w.onEvent != nil {
		verb := "host"
		switch {
		case o.Abandon:
			verb = "abandon"
		case o.Stop:
			verb = "stop"
		}
		w.tell(p, "%s %s under %s", verb, w.shardName(o.Type, o.Shard), fenceName(o.Fence))
	}
}

func (t *trace) route(w *world, p *proc, r *shard.RouteChange) {
	t.begin(w.now, p.idx, opRoute)
	t.u64(uint64(r.Type))
	t.u64(uint64(r.Shard))
	t.buf = append(t.buf, byte(r.State))
	t.id(r.Home)
	t.bytes(r.Fence[:])
	t.end()
	if !t.text && w.onEvent == nil {
		return
	}
	switch r.State {
	case shard.RouteLocal:
		w.tell(p, "route %s: here", w.shardName(r.Type, r.Shard))
	case shard.RouteRemote:
		w.tell(p, "route %s: at %s", w.shardName(r.Type, r.Shard), w.name(r.Home))
	default:
		w.tell(p, "route %s: unknown", w.shardName(r.Type, r.Shard))
	}
}

var shardEventNames = map[shard.EventKind]string{shard.CoordinatorStarted: "coordinator collects reports of",
	shard.CoordinatorReady: "coordinator ready for", shard.CoordinatorStopped: "coordinator stopped for",
	shard.ShardAllocated: "allocated", shard.ShardReleased: "released", shard.StaleRefused: "refused stale"}

func (t *trace) shard(w *world, p *proc, e *shard.Event) {
	t.begin(w.now, p.idx, opShard)
	t.buf = append(t.buf, byte(e.Kind))
	t.u64(uint64(e.Type))
	t.u64(uint64(e.Shard))
	t.u64(uint64(e.Term))
	t.id(e.Home)
	t.bytes(e.Fence[:])
	t.end()
	if !t.text && w.onEvent == nil {
		return
	}
	var b strings.Builder
	b.WriteString(shardEventNames[e.Kind])
	switch e.Kind {
	case shard.CoordinatorStarted, shard.CoordinatorReady, shard.CoordinatorStopped:
		fmt.Fprintf(&b, " %s, term %d", w.typeName(e.Type), e.Term)
	case shard.ShardAllocated:
		fmt.Fprintf(&b, " %s to %s under %s", w.shardName(e.Type, e.Shard), w.name(e.Home), fenceName(e.Fence))
	case shard.ShardReleased:
		fmt.Fprintf(&b, " %s", w.shardName(e.Type, e.Shard))
	default:
		fmt.Fprintf(&b, " of %s, term %d", w.shardName(e.Type, e.Shard), e.Term)
	}
	w.tell(p, "%s", b.String())
}

// tell gives one line about a process to the text of the trace and to a script.
func (w *world) tell(p *proc, format string, args ...any) {
	if !w.trace.text && w.onEvent == nil {
		return
	}
	line := fmt.Sprintf(format, args...)
	if w.trace.text {
		w.trace.line(w.now, p.idx, "%s", line)
	}
	if w.onEvent != nil {
		w.onEvent(p, line)
	}
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// fenceName prints term and epoch: the birth is the same everywhere.
func fenceName(f route.Fence) string { return fmt.Sprintf("%d.%d", f.Term(), f.Epoch()) }
