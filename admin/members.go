// Members: the members of the cluster as this node sees them, what may be said of one, and which of them host the
// instances of partitions.

package admin

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/kith-io/kith"
)

// members is the answer of GET /v1/members.
type members struct {
	Self      string   `json:"self"`
	Cluster   string   `json:"cluster"` // its id, in hexadecimal; zeros before the node is a member
	Leader    string   `json:"leader,omitempty"`
	Converged bool     `json:"converged"`
	Up        int      `json:"up"`
	PausedBy  string   `json:"rebalancing_paused_by,omitempty"` // which node paused the balance
	Outages   []outage `json:"outages,omitempty"`
	Tenure    *tenure  `json:"tenure,omitempty"`
	Members   []member `json:"members"`
}

// tenure is whether this node may handle messages, and which members vouch for it.
type tenure struct {
	Held  bool      `json:"held"`
	Since time.Time `json:"since"`
	Left  float64   `json:"left_s"`  // for which it is held without another grant
	Least float64   `json:"least_s"` // the least that was left when it was renewed, since it was last gained
	Seats []seat    `json:"seats"`
	Text  string    `json:"text"` // all of it in a sentence
}

// seat is one seat of the electorate.
type seat struct {
	Holder string  `json:"holder,omitempty"` // none: it is empty
	Left   float64 `json:"left_s"`           // for which it vouches for this node; 0: it does not
}

// tenureOf returns it; nil where there are none.
func tenureOf(t kith.TenureStats) *tenure {
	if !t.On {
		return nil
	}
	out := &tenure{Held: t.Held, Since: t.Since, Left: t.Left.Seconds(), Least: t.Least.Seconds(), Seats: []seat{},
		Text: t.String()}
	for _, s := range t.Seats {
		x := seat{Left: s.Left.Seconds()}
		if !s.Holder.IsZero() {
			x.Holder = s.Holder.String()
		}
		out.Seats = append(out.Seats, x)
	}
	return out
}

// outage is a member that does not answer, or that was lost and has shards that wait.
type outage struct {
	Member   string     `json:"member"`
	Since    time.Time  `json:"since"`
	Decided  bool       `json:"decided"`             // it is down; before, it may still turn out to live
	ServedBy *time.Time `json:"served_by,omitempty"` // when its shards may be served elsewhere; none: nobody decides
	Late     bool       `json:"late,omitempty"`      // that is over, and they wait still
	NoQuorum bool       `json:"no_quorum,omitempty"` // of the seats of tenures: nobody's end is proven
	Shards   int        `json:"shards"`              // that lived there, as far as this node knew
	Text     string     `json:"text"`                // all of it in a sentence
}

func outagesOf(list []kith.Outage) (out []outage) {
	for _, o := range list {
		x := outage{Member: o.Member.String(), Since: o.Since, Decided: o.Decided, Late: o.Late,
			NoQuorum: o.NoQuorum, Shards: o.Shards, Text: o.String()}
		if !o.ServedBy.IsZero() {
			x.ServedBy = &o.ServedBy
		}
		out = append(out, x)
	}
	return out
}

// member is one of them.
type member struct {
	ID         string      `json:"id"`
	Addr       string      `json:"addr"`
	Status     kith.Status `json:"status"`
	UpNumber   uint32      `json:"up_number,omitempty"`
	Roles      []string    `json:"roles"`
	AppVersion string      `json:"app_version,omitempty"`
	Reachable  bool        `json:"reachable"`
	AccusedBy  []string    `json:"accused_by,omitempty"` // which members hold it unreachable
	Cause      string      `json:"cause,omitempty"`      // why it is down
	By         string      `json:"by,omitempty"`         // which node said so
}

func membersOf(v *kith.View) members {
	out := members{Self: v.Self.String(), Cluster: hex(v.ClusterID), Converged: v.Converged, Up: v.CountUp(),
		Members: []member{}}
	if !v.Leader.IsZero() {
		out.Leader = v.Leader.String()
	}
	by, _ := v.MetadataValue(kith.RebalancingPausedKey)
	out.PausedBy = string(by)
	for i := range v.Members {
		out.Members = append(out.Members, memberOf(v, &v.Members[i]))
	}
	return out
}

func memberOf(v *kith.View, m *kith.Member) member {
	out := member{ID: m.ID.String(), Addr: m.ID.Addr.String(), Status: m.Status, UpNumber: m.UpNumber,
		Roles: append([]string{}, m.Roles...), AppVersion: m.AppVersion, Reachable: v.Reachable(m.ID)}
	for _, a := range v.Accusations {
		if a.Subject == m.ID {
			out.AccusedBy = append(out.AccusedBy, a.Observer.String())
		}
	}
	if m.Status == kith.Down {
		out.Cause = m.Cause.String()
	}
	if !m.By.IsZero() {
		out.By = m.By.String()
	}
	return out
}

func (a *api) members(w http.ResponseWriter, _ *http.Request) {
	all := membersOf(a.node.View())
	all.Outages = outagesOf(a.node.Health().Outages)
	all.Tenure = tenureOf(a.node.Stats().Suspension.Tenure)
	say(w, http.StatusOK, all)
}

func (a *api) member(w http.ResponseWriter, q *http.Request) {
	v := a.node.View()
	if m := memberAt(w, v, q.PathValue("addr")); m != nil {
		say(w, http.StatusOK, memberOf(v, m))
	}
}

// short brings an address, or an identity, into the form in which members are written: IPv6 is short there, and names
// have small letters.
func short(text string) string {
	at, incarnation, is := strings.Cut(text, "#")
	addr, err := kith.ParseAddr(at)
	switch {
	case err != nil:
		return text
	case is:
		return addr.String() + "#" + incarnation
	}
	return addr.String()
}

// memberAt returns the member of that address or identity; nil when there is none, and then the request has been
// answered.
func memberAt(w http.ResponseWriter, v *kith.View, text string) *kith.Member {
	addr := short(text)
	for i := range v.Members {
		if m := &v.Members[i]; m.ID.Addr.String() == addr || m.ID.String() == addr {
			return m
		}
	}
	fail(w, http.StatusNotFound, "no member at "+called(text))
	return nil
}

// convergence is the answer of GET /v1/convergence.
type convergence struct {
	Converged bool      `json:"converged"`
	For       float64   `json:"for_s,omitempty"` // how long there has been none
	Blocking  int       `json:"blocking"`        // members in the way
	Blockers  []blocker `json:"blockers"`        // the first of them
}

type blocker struct {
	Member string `json:"member"`
	Why    string `json:"why"`
}

func (a *api) convergence(w http.ResponseWriter, q *http.Request) {
	c, err := a.node.Convergence(q.Context())
	if err != nil {
		failed(w, err)
		return
	}
	say(w, http.StatusOK, convergenceOf(c))
}

func convergenceOf(c kith.Convergence) convergence {
	out := convergence{Converged: c.Converged, Blocking: c.Blocking, Blockers: []blocker{},
		For: c.For.Round(time.Millisecond).Seconds()}
	for _, b := range c.Blockers {
		out.Blockers = append(out.Blockers, blocker{b.Member.ID.String(), b.String()})
	}
	return out
}

// decisions is the answer of GET /v1/decisions.
type decisions struct {
	Decisions []decision `json:"decisions"`
}

type decision struct {
	At    time.Time `json:"at"`
	Lives bool      `json:"lives"`
	Text  string    `json:"text"`
}

func (a *api) decisions(w http.ResponseWriter, _ *http.Request) {
	say(w, http.StatusOK, decisions{decisionsOf(a.node)})
}

func decisionsOf(n *kith.Node) []decision {
	out := []decision{}
	for _, d := range n.Decisions() {
		out = append(out, decision{d.Time, d.Lives, d.String()})
	}
	return out
}

// leave makes the node leave. What the shutdown costs in time is not this request's: it goes on when the client has
// gone.
func (a *api) leave(w http.ResponseWriter, _ *http.Request) {
	go func() { _ = a.node.Leave(context.Background()) }() // its outcome is the node's: Done, Err, the log
	say(w, http.StatusAccepted, done{"leaving " + a.node.ID().String()})
}

func (a *api) down(w http.ResponseWriter, q *http.Request) {
	m := memberAt(w, a.node.View(), q.PathValue("addr"))
	if m == nil {
		return
	}
	if err := a.node.Down(q.Context(), m.ID.Addr.String()); err != nil {
		failed(w, err)
		return
	}
	say(w, http.StatusOK, done{"downed " + m.ID.Addr.String()})
}

func (a *api) prepare(w http.ResponseWriter, q *http.Request) {
	if err := a.node.PrepareForFullShutdown(q.Context()); err != nil {
		failed(w, err)
		return
	}
	say(w, http.StatusOK, done{"the cluster prepares for its full shutdown"})
}

func (a *api) refound(w http.ResponseWriter, q *http.Request) {
	if err := a.node.Refound(q.Context()); err != nil {
		failed(w, err)
		return
	}
	say(w, http.StatusOK, done{"the seats of the lost go to other members"})
}

// partitions is the answer of GET /v1/partitions.
type partitions struct {
	Total int         `json:"total"`
	List  []partition `json:"list"` // the first of them, by path
}

// partition is one of them.
type partition struct {
	Path      string     `json:"path"`
	Count     string     `json:"count"` // how the number of instances follows: exactly, survives, share, scaled
	N         int        `json:"n"`
	Handoff   string     `json:"handoff"` // that is in force
	Role      string     `json:"role,omitempty"`
	Wanted    int        `json:"wanted"`
	Has       int        `json:"has"`
	Deleted   bool       `json:"deleted,omitempty"` // its instances end
	DefinedBy string     `json:"defined_by"`
	Epoch     uint64     `json:"epoch"`
	Instances []string   `json:"instances"` // nodes by slot; empty: the slot has none
	Changes   []handover `json:"changes"`
}

// handover is an instance that is being handed over.
type handover struct {
	Slot     int    `json:"slot"`
	From     string `json:"from"`
	To       string `json:"to,omitempty"` // empty: it ends
	Complete bool   `json:"complete"`
}

func partitionsOf(v *kith.View, most int) partitions {
	out := partitions{Total: len(v.Partitions), List: []partition{}}
	for i := range v.Partitions[:min(len(v.Partitions), most)] {
		p := &v.Partitions[i]
		one := partition{Path: p.Path, Count: p.Count.Kind.String(), N: p.Count.N, Handoff: p.InForce.String(),
			Role: p.Role, Wanted: p.Wanted, Has: p.Has(), Deleted: p.Deleted, DefinedBy: p.DefinedBy.String(), Epoch: p.Epoch,
			Instances: []string{}, Changes: []handover{}}
		for _, id := range p.Instances {
			one.Instances = append(one.Instances, orNone(id))
		}
		for _, c := range p.Changes {
			one.Changes = append(one.Changes, handover{c.Slot, c.From.String(), orNone(c.To), c.Complete})
		}
		out.List = append(out.List, one)
	}
	return out
}

// orNone is a node, empty for none.
func orNone(id kith.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// partitions is bounded by the table itself.
func (a *api) partitions(w http.ResponseWriter, _ *http.Request) {
	v := a.node.View()
	say(w, http.StatusOK, partitionsOf(v, len(v.Partitions)))
}
