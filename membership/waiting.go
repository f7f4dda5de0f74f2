// Waiting: what a node waits for that is not Up yet, in words and as values, from its start until its cluster has let
// it in.

package membership

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/peer"
)

// A node that is not Up yet says what it waits for after waitingAfter, and again each waitingAgain.
const (
	waitingAfter = 10 * time.Second
	waitingAgain = 60 * time.Second
)

// maxWhyUnreached bounds what is kept of the reason why a contact could not be reached, in bytes.
const maxWhyUnreached = 200

// WaitKind is what a node waits for.
type WaitKind uint8

// What a node may wait for before it is ready.
const (
	WaitNothing      WaitKind = iota // it is Up, on its way out, or over
	WaitSeeds                        // no seed has answered
	WaitSettings                     // a seed refuses this node: a setting that must agree differs
	WaitCertificate                  // a seed's certificate is not believed here, or this node's is not believed there
	WaitCluster                      // the nodes that answer are in no cluster, and this one forms none, or not yet
	WaitAdmission                    // a member was asked to admit this node
	WaitMembers                      // this node is a member; more are to come before the first ones are let in
	WaitConvergence                  // this node is a member; the leader admits no node before all have seen one state
	WaitLeader                       // this node is a member; the leader has not let it in yet
	WaitTypes                        // this node is Up; coordinators have not acknowledged its types yet
	WaitRefusedTypes                 // this node is Up; the cluster refuses types as they are registered here

	waitKinds
)

var waitNames = [waitKinds]string{"nothing", "seeds", "settings", "certificate", "cluster", "admission", "members",
	"convergence", "leader", "types",
	"refused-types"}

// String names the kind as logs do.
func (k WaitKind) String() string { return enum.Name(waitNames[:], k, "wait") }

// MarshalText gives the name.
func (k WaitKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (k *WaitKind) UnmarshalText(text []byte) error { return enum.Parse(k, text) }

// Waiting says what a node waits for before it is Up.
type Waiting struct {
	For    WaitKind
	Detail string // the same in words, with names and values; empty when For is WaitNothing
	// Addrs are the seeds that have not answered (WaitSeeds), that refuse (WaitSettings, WaitCertificate), the member that
	// was asked (WaitAdmission), or those that convergence waits for: the first 64 of these. The caller's.
	Addrs []peer.Addr
	// Setting is what differs under WaitSettings, Ours and Theirs the two values as text.
	Setting, Ours, Theirs string
}

// NotReadyError is a node that was not Up when the time to wait for that was over: what it waits for, and why the wait
// ended, the error of a context, which it matches.
type NotReadyError struct {
	Waiting
	Err error
}

// Error says what ended the wait, and what the node waits for.
func (e *NotReadyError) Error() string {
	return fmt.Sprintf("kith: not up yet: %v: %s", e.Err, e.Detail)
}

// Unwrap returns why the wait ended.
func (e *NotReadyError) Unwrap() error { return e.Err }

// UnreachedCommand tells that an address that this node asks for a cluster could not be reached, or refused it, and
// why. Kind is WaitSeeds when nobody answered there, else WaitSettings (with Setting, Ours and Theirs) or
// WaitCertificate. The strings are copied up to 200 bytes each.
type UnreachedCommand struct {
	Addr peer.Addr
	Kind WaitKind
	Why  string

	Setting, Ours, Theirs string

	// Unasked says that nobody was asked: the name could not be looked up. That is no silence to form a cluster on.
	Unasked bool
}

func (UnreachedCommand) command() {}

// unreached is the last word about a contact that could not be asked. Kind WaitNothing: there is none.
type unreached struct {
	kind WaitKind
	why  string

	setting, ours, theirs string
}

// noteUnreached keeps why a contact could not be reached, until it answers.
func (f *forming) noteUnreached(u UnreachedCommand) {
	cut := func(s string) string { return strings.Clone(clip(s, maxWhyUnreached)) }
	if c := f.contact(u.Addr); c != nil && f.phase == probing {
		c.spoke, c.unasked = false, u.Unasked
		if u.Unasked {
			c.unaskedAt = f.now
		}
		c.unreached = unreached{u.Kind, cut(u.Why), cut(u.Setting), cut(u.Ours), cut(u.Theirs)}
	}
}

// heard forgets why a contact could not be reached: it has spoken.
func (f *forming) heard(a peer.Addr) {
	if c := f.contact(a); c != nil {
		c.spoke, c.unasked, c.unaskedAt, c.unreached = true, false, 0, unreached{}
	}
}

// Waiting says what this node waits for, as of its last step.
func (m *Machine) Waiting() Waiting {
	switch m.phase {
	case idle, probing:
		return m.forming.waiting()
	case pending:
		return m.joining.waiting()
	case member:
		if st := m.st.Status(m.self); st == cluster.Joining || st == cluster.WeaklyUp {
			return m.leading.waiting()
		}
	}
	return Waiting{}
}

// waiting is what a node waits for that has found no cluster: first what an operator has to mend.
func (f *forming) waiting() Waiting {
	for _, kind := range [...]WaitKind{WaitSettings, WaitCertificate} {
		if w := f.refusing(kind); len(w.Addrs) > 0 {
			return w
		}
	}
	if text := f.heldBack(); text != "" {
		return Waiting{For: WaitCluster, Detail: text}
	}
	seeds := f.contacts[:min(len(f.joining.seeds), len(f.contacts))]
	silent := Waiting{For: WaitSeeds}
	var said, why []string
	for i := range seeds {
		if c := &seeds[i]; c.spoke {
			said = append(said, c.addr.String())
		} else {
			silent.Addrs = append(silent.Addrs, c.addr)
			why = append(why, c.addr.String()+paren(c.unreached.why))
		}
	}
	switch {
	case len(seeds) == 0 && f.joining.awaits:
		return Waiting{For: WaitSeeds, Detail: "this node is looking for contact points: no seeds have been found yet"}
	case len(seeds) == 0:
		return Waiting{For: WaitCluster, Detail: "this node is about to form a cluster"}
	case len(said) == 0:
		silent.Detail = "no seed answers: " + named(why)
		return silent
	case f.joining.refused != "":
		return Waiting{For: WaitAdmission, Detail: "the last member that was asked put this node off: " + f.joining.refused}
	case len(why) == 0:
		return Waiting{For: WaitCluster, Detail: "no seed is in a cluster yet: " + named(said)}
	}
	return Waiting{For: WaitCluster, Detail: fmt.Sprintf("no seed is in a cluster: %s say so, nothing is heard of %s",
		named(said), named(why)), Addrs: silent.Addrs}
}

// refusing gathers the contacts that refuse this node, or that it refuses, for one kind of reason.
func (f *forming) refusing(kind WaitKind) (w Waiting) {
	for i := range f.contacts {
		u := &f.contacts[i].unreached
		if u.kind != kind {
			continue
		}
		if w.Addrs = append(w.Addrs, f.contacts[i].addr); len(w.Addrs) == 1 {
			w.For, w.Setting, w.Ours, w.Theirs = kind, u.setting, u.ours, u.theirs
			w.Detail = u.why
			if kind == WaitSettings {
				w.Detail = fmt.Sprintf("%s refuses this node: %s differs: ours %q, theirs %q", w.Addrs[0], u.setting, u.ours,
					u.theirs)
			} else if !strings.Contains(u.why, w.Addrs[0].String()) {
				w.Detail = fmt.Sprintf("%s: %s", w.Addrs[0], u.why)
			}
		}
	}
	if n := len(w.Addrs) - 1; n > 0 {
		w.Detail += fmt.Sprintf("; %d more for the like", n)
	}
	return w
}

// waiting is what a node waits for that has asked a member to admit it.
func (j *joining) waiting() Waiting {
	w := Waiting{For: WaitAdmission, Addrs: []peer.Addr{j.target.Addr},
		Detail: fmt.Sprintf("%s was asked to admit this node and has not answered yet", j.target)}
	if j.refused != "" {
		w.Detail += "; the last one that was asked put it off: " + j.refused
	}
	return w
}

// waiting is what a member waits for that has not been let in, as far as it can tell: the leader decides, by settings
// that should be the same there.
func (l *leading) waiting() Waiting {
	if cluster.Preparing(l.st.Members) {
		return Waiting{For: WaitLeader, Detail: "the whole cluster is being shut down: nobody is let in any more"}
	}
	if text := l.cfg.minimums().unmet(l.st.Members); text != "" {
		return Waiting{For: WaitMembers, Detail: "more members are to come before joining ones are let in: " + text}
	}
	if c := l.blocking.convergence(); !c.Converged {
		w := Waiting{For: WaitConvergence}
		var why []string
		for _, b := range c.Blockers {
			w.Addrs, why = append(w.Addrs, b.Member.ID.Addr), append(why, b.String())
		}
		w.Detail = "the leader lets nobody in before all members have seen one state: " + named(why)
		return w
	}
	lead := cluster.Leader(l.st.Members, l.st.Unreachable, l.self, "")
	if lead.IsZero() {
		return Waiting{For: WaitLeader, Detail: "there is no leader that could let this node in"}
	}
	return Waiting{For: WaitLeader, Detail: fmt.Sprintf("the leader %s has not let this node in yet", lead),
		Addrs: []peer.Addr{lead.Addr}}
}

// unmet says which minimum is not there, empty when all are.
func (n minimums) unmet(members []cluster.Member) string {
	if n.met(members) {
		return ""
	}
	if all := presentIn(members, ""); n.members > 1 && all < n.members {
		return fmt.Sprintf("%d of at least %d", all, n.members)
	}
	i := slices.IndexFunc(n.roles, func(r RoleMinimum) bool { return presentIn(members, r.Role) < r.Members })
	r := n.roles[i]
	return fmt.Sprintf("%d of at least %d with the role %q", presentIn(members, r.Role), r.Members, r.Role)
}

// tellWaiting says now and then what this node waits for.
func (m *Machine) tellWaiting() {
	w := m.Waiting()
	if w.For == WaitNothing {
		return
	}
	m.in(timerWaiting, waitingAgain)
	m.tell(Event{Kind: NotUpYet, Waiting: &w, Detail: w.Detail})
}

// named joins names, and says how many there are beside the first eight.
func named(list []string) string {
	if more := len(list) - heldNames; more > 0 {
		list = append(list[:heldNames:heldNames], fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, ", ")
}

func paren(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// unasked returns the seeds that could not be asked: those with names that could not be looked up, also lately: within
// the time in which others are looked for.
func (f *forming) unasked() (list []peer.Addr) {
	for _, c := range f.contacts[:min(len(f.joining.seeds), len(f.contacts))] {
		if !c.nak && (c.unasked || c.unaskedAt > 0 && f.now-c.unaskedAt < f.cfg.SeedTimeout) {
			list = append(list, c.addr)
		}
	}
	return list
}

// heldUnasked says that no cluster is formed for seeds that could not be asked, empty when that is not so.
func (f *forming) heldUnasked() string {
	list := f.unasked()
	if !f.looked || !f.joining.first || len(list) == 0 {
		return ""
	}
	return "no cluster is formed on the silence of seeds that could not be asked: " + f.withWhy(list)
}

// withWhy names addresses with the reasons why they could not be reached.
func (f *forming) withWhy(list []peer.Addr) string {
	var names []string
	for _, a := range list {
		text := a.String()
		if c := f.contact(a); c != nil {
			text += paren(c.unreached.why)
		}
		names = append(names, text)
	}
	return named(names)
}

// because says why this node forms a cluster alone.
func (f *forming) because() string {
	var silent []peer.Addr
	seeds := f.contacts[:min(len(f.joining.seeds), len(f.contacts))]
	for i := range seeds {
		if !seeds[i].nak {
			silent = append(silent, seeds[i].addr)
		}
	}
	switch {
	case f.anew:
		return "an operator has ordered a new one, and none was found"
	case len(seeds) == 0 && f.record.Known():
		return "this node is the only seed, and remembers nobody who could carry the last one on"
	case len(seeds) == 0:
		return "this node is the only seed, and remembers no cluster"
	case len(silent) == 0:
		return "this node is the first seed, and all others say that they are in none"
	}
	return "this node is the first seed, and no cluster was found in time: nothing was heard of " + f.withWhy(silent)
}

// agreed says why this node forms a cluster by agreement; missing are remembered nodes that are not there.
func (f *forming) agreed(missing []peer.Addr) string {
	text := "those who could carry the remembered cluster on have agreed"
	if len(missing) > 0 {
		text += ", without " + f.withWhy(missing)
	}
	return text
}

// heldBack returns why this node forms no cluster, empty when it may or has nothing to do with it.
func (f *forming) heldBack() string {
	switch {
	case f.phase != probing || f.anew || f.joining.awaits && !f.record.Known():
		return ""
	case f.never:
		return "this node never forms a cluster, and no seed is in one"
	case !f.joining.first && !f.record.Known():
		return ""
	}
	list, ok := f.missing(f.fresh)
	switch {
	case f.asked || ok || !f.remembers() && !f.othersRemember:
		return f.heldUnasked()
	}
	names := make([]string, 0, heldNames)
	for _, a := range list[:min(len(list), heldNames)] {
		names = append(names, a.String())
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("members of a cluster that is remembered may live and carry it on: nothing is heard of %s",
		strings.Join(names, ", "))
}
