// Duplicate: two clusters of one name that do not know of each other, found through the seeds (JOIN-1).

package membership

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// twinAgain is how long the same twin at the same seed is not reported again.
const twinAgain = 10 * time.Minute

// twinFresh is for how long a meeting says that the twin lives at that address.
const twinFresh = 2 * time.Minute

// OtherClusterCommand tells what the transport met at an address: a node of the same name in another cluster. Birth is
// zero when it is not known. It is worth an event when the address is a seed's or remembered; the two are never merged,
// but the younger one ends when it is the smaller one, too.
type OtherClusterCommand struct {
	Addr             peer.Addr
	ClusterID, Birth uint64
}

func (OtherClusterCommand) command() {}

// Duplicate is another cluster of this one's name: found at a seed, so probably one cluster that was formed twice.
type Duplicate struct {
	ClusterID, Birth uint64    // of the other one; Birth zero: not known
	Via              peer.Addr // the seed, or remembered address, at which it was found
}

// splitAgain is how long a member of the other side is not reported again, maxSplits how many are reported in that
// time.
const (
	splitAgain = 10 * time.Minute
	maxSplits  = 64
)

// met is when a member of the other side of this cluster was met.
type met struct {
	addr peer.Addr
	at   time.Duration
}

// split tells that this side and that of other have removed each other and both live, under one cluster id and birth:
// an operator has downed each on the other. It is a report and ends no node, for a hello may name any identity. It
// reports whether this is news.
func (b *beliefs) split(other peer.ID) bool {
	b.splits = slices.DeleteFunc(b.splits, func(o met) bool { return b.now-o.at >= splitAgain })
	if len(b.splits) >= maxSplits || slices.ContainsFunc(b.splits, func(o met) bool { return o.addr == other.Addr }) {
		return false
	}
	b.splits = append(b.splits, met{other.Addr, b.now})
	b.stats.Splits++
	b.tell(Event{Kind: SplitCluster, By: other, Duplicate: &Duplicate{b.st.Cluster, b.st.Birth, other.Addr},
		Detail: fmt.Sprintf(
			"%s lives on a side of this cluster, %016x, birth %d, that has removed the side of %s and was removed by it",
			other, b.st.Cluster, b.st.Birth, b.self)})
	return true
}

// sameCluster deals with a node that says at an address without a member that it is one of this very cluster: when it
// was removed here it is notified, and answers likewise when its side has removed this node.
func (b *beliefs) sameCluster(from peer.ID, cluster, birth uint64) {
	if cluster == b.st.Cluster && birth == b.st.Birth {
		b.tellRemoved(from)
	}
}

// others is what a machine knows of other clusters of its name.
type others struct {
	*core
	forming *forming
	joining *joining

	twins  []twin // by seed
	askers []asker
	seedAt int // the seed that was asked last
}

type twin struct {
	Duplicate
	again time.Duration // when to tell it again
	at    time.Duration // when it was met last
	met   bool          // at an address that this node dialled, by a node that showed what members must show
}

// Duplicates lists the other clusters of this one's name that a machine met within the last ten minutes, by address,
// and the other sides of its own cluster, which have its ClusterID. Nil for none; the slice is the caller's.
func Duplicates(m *Machine) (list []Duplicate) {
	if m.phase != member {
		return nil
	}
	for i := range m.others.twins {
		if t := &m.others.twins[i]; m.now-t.at < twinAgain && m.st.At(t.Via).IsZero() && t.ClusterID != m.st.Cluster {
			list = append(list, t.Duplicate)
		}
	}
	for _, o := range m.beliefs.splits {
		if m.now-o.at < splitAgain && m.st.At(o.addr).IsZero() {
			list = append(list, Duplicate{m.st.Cluster, m.st.Birth, o.addr})
		}
	}
	sort.SliceStable(list, func(i, k int) bool { return list[i].Via.Compare(list[k].Via) < 0 })
	return list
}

// askSeed asks the next seed, or remembered address, that is no member which cluster it belongs to. One at a time: a
// list of seeds that are gone must not cost a large cluster much.
func (o *others) askSeed() {
	list := o.forming.contacts
	if o.cfg.SeedCheckInterval < 0 || len(list) == 0 {
		return
	}
	o.in(timerSeedCheck, o.cfg.SeedCheckInterval)
	if len(o.elders()) > 0 {
		o.in(timerSeedCheck, min(o.cfg.SeedCheckInterval, o.cfg.ProbeInterval))
	}
	for range list {
		o.seedAt = (o.seedAt + 1) % len(list)
		if a := list[o.seedAt].addr; o.st.At(a).IsZero() {
			o.post(peer.ID{Addr: a}, wire.KindJoinProbe, func(b []byte) []byte { return wire.AppendU64(b, o.joining.nonce) })
			return
		}
	}
}

// otherCluster takes note that a node at addr, an address that this node asks, belongs to that cluster. met: this node
// dialled it, and it showed what members must show.
func (o *others) otherCluster(addr peer.Addr, cluster, birth uint64, met bool) {
	if o.phase != member || cluster == 0 || cluster == o.st.Cluster || !o.asks(addr) {
		return
	}
	t := twin{Duplicate: Duplicate{cluster, birth, addr}, again: o.now + twinAgain, at: o.now, met: met}
	i := slices.IndexFunc(o.twins, func(o twin) bool { return o.Via == addr })
	switch {
	case i < 0:
		o.twins = append(o.twins, t)
	case o.twins[i].ClusterID == cluster && o.now < o.twins[i].again:
		known := &o.twins[i]
		known.at, known.met = o.now, known.met || met
		o.yield()
		return
	default:
		o.twins[i] = t
	}
	o.tell(Event{Kind: DuplicateCluster, Duplicate: &t.Duplicate, Detail: fmt.Sprintf("cluster %016x, birth %d, at %s; "+
		"this is cluster %016x, birth %d", cluster, birth, addr, o.st.Cluster, o.st.Birth) + o.lower(birth)})
	o.yield()
	if o.phase == member && o.cfg.SeedCheckInterval > 0 && len(o.elders()) > 0 {
		o.in(timerSeedCheck, min(o.cfg.SeedCheckInterval, o.cfg.ProbeInterval))
	}
}

// lower says which cluster's writes a store refuses that checks fences and has seen those of both.
func (o *others) lower(birth uint64) string {
	switch {
	case birth == 0 || birth == o.st.Birth:
		return ""
	case birth < o.st.Birth:
		return ": that is the older one, and stores that check fences refuse its writes once they have seen this one's"
	}
	return ": this is the older one, and stores that check fences refuse its writes once they have seen the other's"
}

// older reports whether another cluster is older than this one. Birth zero: not known.
func (o *others) older(cluster, birth uint64) bool {
	return birth != 0 && (birth < o.st.Birth || birth == o.st.Birth && cluster < o.st.Cluster)
}

// own counts the members of this cluster that are not Down.
func (o *others) own() (n int) {
	for i := range o.st.Members {
		if o.st.Members[i].Status != cluster.Down {
			n++
		}
	}
	return n
}

// elders returns the addresses at which this node has lately met the same older cluster, the one met last.
func (o *others) elders() (list []peer.Addr) {
	last := -1
	for i := range o.twins {
		t := &o.twins[i]
		if t.met && o.older(t.ClusterID, t.Birth) && o.now-t.at <= twinFresh && (last < 0 || t.at > o.twins[last].at) {
			last = i
		}
	}
	for i := range o.twins {
		t := &o.twins[i]
		if last >= 0 && t.met && t.ClusterID == o.twins[last].ClusterID && o.now-t.at <= twinFresh {
			list = append(list, t.Via)
		}
	}
	return sortAddrs(list)
}

// yield ends this node when its cluster is the younger of two and the smaller: when the older was met at more addresses
// than its own has members; of a cluster of one, at any. Only what this node dialled itself counts: at its seeds, at
// addresses that were remembered, and, alone, at those from where it was asked; so no stranger can bring it about by
// asking. The older one never yields, and a younger one of several that is not smaller waits for an operator.
func (o *others) yield() {
	met, own := o.elders(), o.own()
	if len(met) == 0 || own > 1 && len(met) <= own {
		return
	}
	i := slices.IndexFunc(o.twins, func(t twin) bool { return t.Via == met[0] })
	older, birth := o.twins[i].ClusterID, o.st.Birth
	o.end(EndDuplicate, o.self, fmt.Sprintf("an older cluster of this name, %016x, birth %d, was met at %d addresses; "+
		"this is cluster %016x, birth %d, of %d", older, o.twins[i].Birth, len(met), o.st.Cluster, birth, own))
	o.over.Record = &Record{ClusterID: older, Birth: o.twins[i].Birth, Highest: birth,
		Others: met[:min(len(met), MaxRemembered)]}
}

// AskedCommand tells that a node of another cluster of this name has said hello here, as it does at its seeds. Its word
// proves nothing: when its cluster is the older one and this node is alone in its own, it is dialled back.
type AskedCommand struct {
	Addr             peer.Addr
	ClusterID, Birth uint64
}

func (AskedCommand) command() {}

// maxAskers is how many nodes of other clusters are dialled back.
const maxAskers = 8

// asker is a node of an older cluster that has said hello here.
type asker struct {
	addr peer.Addr
	at   time.Duration // when it was dialled back
}

// askedBy dials a node of an older cluster back. Only a node that is alone does: nobody else would yield for it.
func (o *others) askedBy(c AskedCommand) {
	if o.phase != member || !o.older(c.ClusterID, c.Birth) || !o.st.At(c.Addr).IsZero() || o.own() > 1 ||
		o.cfg.SeedCheckInterval < 0 {
		return
	}
	i := slices.IndexFunc(o.askers, func(a asker) bool { return a.addr == c.Addr })
	switch {
	case i >= 0 && o.now-o.askers[i].at < o.cfg.ProbeInterval:
		return
	case i >= 0:
		o.askers = slices.Delete(o.askers, i, i+1)
	case len(o.askers) == maxAskers:
		o.askers = slices.Delete(o.askers, 0, 1)
	}
	o.askers = append(o.askers, asker{c.Addr, o.now})
	o.post(peer.ID{Addr: c.Addr}, wire.KindJoinProbe, func(b []byte) []byte { return wire.AppendU64(b, o.joining.nonce) })
}

// asks reports whether this node has an address to ask: a seed, one that is remembered, or one that was dialled back.
func (o *others) asks(a peer.Addr) bool {
	return o.forming.contact(a) != nil || slices.ContainsFunc(o.askers, func(k asker) bool { return k.addr == a })
}
