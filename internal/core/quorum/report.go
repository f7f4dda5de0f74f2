// Report: what a store says of itself to an operator: its disks, what waits for them, and what this one lacks.

package quorum

import (
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
)

// Report is a store as one of its disks knows it.
type Report struct {
	Name     string // of cluster and store
	Config   Config
	Disk     peer.ID
	Founders int  // disks with which the store began; 0: it has not begun, as far as this disk knows
	Begun    bool // this disk is one of the store
	Disks    []DiskReport
	Groups   int // that this disk is a replica of
	Filling  []Filling
	Waits    time.Duration // until this disk begins to read groups that it lacks: requests are under way till then
	Stats    Stats
}

// DiskReport is one disk of a store.
type DiskReport struct {
	Disk      peer.ID
	Node      peer.ID       // that has it now; zero for none
	Up        bool          // it answers
	Leaves    bool          // others take its places
	Away      time.Duration // since no node has had it
	Groups    int           // that it is a replica of
	Hints     int           // writes that wait for it here
	HintBytes int
}

// Filling is a group that this disk has yet to read from others.
type Filling struct {
	Group int
	Keys  int     // that it has
	From  peer.ID // the disk that it reads; zero for none at the moment
	Read  int     // replicas that lack nothing, and of which it has all
	Need  int     // how many of those it has to read
}

// Report returns the store as this disk knows it.
func (s *Site) Report() *Report {
	r := &Report{Name: s.name, Config: s.cfg, Disk: s.id, Founders: len(s.founders), Begun: s.machine != nil}
	for _, id := range s.disks {
		d := DiskReport{Disk: id, Node: s.nodeOf(id), Up: s.given.Up.Has(id), Leaves: s.given.Leaving.Has(id)}
		if id == s.id {
			d.Node, d.Up = s.self, true
		}
		if since, is := s.away[id]; is && d.Node.IsZero() {
			d.Away = s.now - since
		}
		r.Disks = append(r.Disks, d)
	}
	m := s.machine
	if m == nil {
		return r
	}
	r.Stats, r.Waits = m.Stats(), max(m.settled-m.now, 0)
	at := map[peer.ID]*DiskReport{}
	for i := range r.Disks {
		d := &r.Disks[i]
		at[d.Disk], d.Groups = d, m.groupsOf(d.Disk)
	}
	for _, h := range m.hints {
		if d := at[h.to]; d != nil {
			d.Hints++
			d.HintBytes += h.size
		}
	}
	for g := range m.groups {
		if m.ident.in>>g&1 == 1 {
			r.Groups++
		}
		if m.ident.lacking>>g&1 == 1 {
			f := m.filling(g)
			f.Need = needs(len(m.groups[g]), m.cfg.W)
			r.Filling = append(r.Filling, f)
		}
	}
	return r
}

// groupsOf returns how many groups a disk is a replica of.
func (r *ring) groupsOf(id peer.ID) (n int) {
	for _, list := range r.groups {
		if slices.Contains(list, id) {
			n++
		}
	}
	return n
}

// filling is how far this disk is in reading a group.
func (d *shelf) filling(g int) Filling {
	c := &d.catching[g]
	f := Filling{Group: g, From: c.from, Read: len(c.whole)}
	for _, n := range d.counts[g] {
		f.Keys += n
	}
	return f
}
