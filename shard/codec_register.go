// The messages by which a region registers and reports, and those that ask for it or refuse it.

package shard

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// register announces a region to the coordinator. With Report it is also the answer to a reportWanted: the promise to
// refuse every fence below (Birth, Term, Floor), and the shards that live here.
type register struct {
	head
	Settings Settings
	Hosts    bool // may be given shards
	Knows    bool // has registered the type; without it Settings are those of the question
	Report   bool
	Floor    uint32 // epoch of the promised floor
	Mask     uint64 // Owned is complete for the parts of the shard space with a bit set, see partShift
	Owned    []held
	HasPast  bool
	Past     recentlyLost // what the sender remembers of lost members
	NotReady bool         // though it hosts, it is given none for now; sent in version 5; older versions get Hosts unset

	// Of a report to a coordinator that knows moves.
	Stopping []route.ShardID // of Owned: the stop call has gone out, their homes are not to be disclosed
	Kept     []held          // transfers that wait here for the next owner, under the fence of the last one
	Holders  peer.Set        // the receivers of what was handed over here
	Gave     []home          // under which fence, and to which of Holders
}

// recentlyLost is a node's memory of members lost within the takeover time, and of those it holds to be members now.
type recentlyLost struct {
	Complete bool // no loss within the takeover time can be missing
	Lost     []loss
	Roll     peer.Set
}

// loss is one member seen Down or removed this long ago; Settled means that it confirmed to host nothing.
type loss struct {
	ID      peer.ID
	Age     time.Duration // whole milliseconds, rounded down: a younger loss waits longer
	Settled bool
}

// partShift is the size of a part of the shard space, as a power of two: 64 parts cover route.MaxShards, so that one
// word says which parts a report covers and no part exceeds maxEntries.
const partShift = 14

const (
	flagHosts  = 1 << 0
	flagKnows  = 1 << 1
	flagReport = 1 << 2
	flagPast   = 1 << 3
	flagMoves  = 1 << 4 // since version 5
	flagReady  = 1 << 5 // that it is not; since version 5
	flagAll    = 1<<6 - 1
)

func (register) kind() wire.Kind { return wire.KindRegister }

func (g register) append(b []byte) []byte {
	var flags uint8
	for i, on := range []bool{g.Hosts, g.Knows, g.Report, g.HasPast, g.moves(), g.NotReady} {
		if on {
			flags |= 1 << i
		}
	}
	b = appendSettings(wire.AppendU8(g.head.append(b), flags), g.Settings)
	if g.Report {
		b = wire.AppendU64(wire.AppendUvarint(b, uint64(g.Floor)), g.Mask)
		b = appendHeld(b, g.Owned)
	}
	if g.HasPast {
		b = appendPast(b, g.Past)
	}
	if g.moves() {
		b = appendHeld(appendShards(b, g.Stopping), g.Kept)
		b = appendPlaces(appendPeers(b, g.Holders), g.Gave)
	}
	return b
}

// moves reports whether there is something to say of moves.
func (g register) moves() bool { return len(g.Stopping)+len(g.Kept)+len(g.Gave) > 0 }

func readRegister(r *wire.Reader) message {
	g := register{head: readHead(r)}
	flags := r.U8()
	if r.Err() == nil && flags > flagAll {
		r.Fail(wire.ErrBadValue)
	}
	g.Hosts, g.Knows = flags&flagHosts != 0, flags&flagKnows != 0
	g.Report, g.HasPast = flags&flagReport != 0, flags&flagPast != 0
	if g.NotReady = flags&flagReady != 0; g.NotReady && !g.Hosts {
		r.Fail(wire.ErrBadValue)
	}
	g.Settings = readSettings(r, g.Type)
	if g.Report {
		g.Floor, g.Mask = readU32(r), r.U64()
		if r.Err() == nil && g.Floor == 0 {
			r.Fail(wire.ErrBadValue)
		}
		g.Owned = readHeld(r, g.Birth)
		for _, h := range g.Owned {
			if uint32(h.Shard) >= g.Settings.Shards || g.Mask&(1<<(h.Shard>>partShift)) == 0 {
				r.Fail(wire.ErrBadValue)
			}
		}
	}
	if g.HasPast {
		g.Past = readPast(r, maxPeers)
	}
	if flags&flagMoves != 0 {
		readMoves(r, &g)
	}
	return g
}

// readMoves reads what a report says of moves: only of shards that its mask covers, and something.
func readMoves(r *wire.Reader, g *register) {
	if list := readShards(r); len(list) > 0 {
		g.Stopping = list
	}
	if list := readHeld(r, g.Birth); len(list) > 0 {
		g.Kept = list
	}
	if ids := readPeers(r, maxPeers); len(ids) > 0 {
		g.Holders, g.Gave = ids, readPlaces(r, g.head, len(ids))
	} else {
		r.Count(4, 0)
	}
	covered := func(s route.ShardID) bool {
		return uint32(s) < g.Settings.Shards && g.Mask&(1<<(s>>partShift)) != 0
	}
	if r.Err() == nil && (!g.Report || !g.moves() || len(g.Holders) > 0 && len(g.Gave) == 0) {
		r.Fail(wire.ErrBadValue)
	}
	for _, s := range g.Stopping {
		if _, owned := slices.BinarySearchFunc(g.Owned, s, func(h held, s route.ShardID) int {
			return cmp.Compare(h.Shard, s)
		}); !owned {
			r.Fail(wire.ErrBadValue)
		}
	}
	for _, h := range g.Kept {
		if !covered(h.Shard) {
			r.Fail(wire.ErrBadValue)
		}
	}
	for _, h := range g.Gave {
		if !covered(h.Shard) {
			r.Fail(wire.ErrBadValue)
		}
	}
}

func appendSettings(b []byte, s Settings) []byte {
	return wire.AppendString(wire.AppendUvarint(wire.AppendString(b, s.Name), uint64(s.Shards)), s.place())
}

// readSettings reads valid settings with a name of the hash id.
func readSettings(r *wire.Reader, id route.TypeID) Settings {
	s := Settings{Name: r.String(route.MaxTypeName), Shards: readU32(r)}
	var function bool
	s.Role, s.ShardBy, function = strings.Cut(r.String(MaxRole), "\x00")
	if r.Err() == nil && (s.Validate() != nil || s.ID() != id || function && s.ShardBy == "") {
		r.Fail(wire.ErrBadValue)
	}
	return s
}

func appendPast(b []byte, p recentlyLost) []byte {
	b = wire.AppendUvarint(wire.AppendBool(b, p.Complete), uint64(len(p.Lost)))
	for _, l := range p.Lost {
		b = wire.AppendUvarint(peer.AppendID(b, l.ID), uint64(l.Age/time.Millisecond))
		b = wire.AppendBool(b, l.Settled)
	}
	return appendPeers(b, p.Roll)
}

// readPast reads two lists of at most so many members each.
func readPast(r *wire.Reader, most int) recentlyLost {
	p := recentlyLost{Complete: r.Bool()}
	n := r.Count(peer.MinIDSize+2, most)
	p.Lost = make([]loss, 0, n)
	for range n {
		l := loss{ID: readPeer(r)}
		age := r.Uvarint()
		if r.Err() == nil && age > maxAge {
			r.Fail(wire.ErrBadValue)
		}
		l.Age, l.Settled = time.Duration(age)*time.Millisecond, r.Bool()
		if r.Err() == nil && len(p.Lost) > 0 && !p.Lost[len(p.Lost)-1].ID.Less(l.ID) {
			r.Fail(wire.ErrBadOrder)
		}
		if r.Err() != nil {
			return recentlyLost{}
		}
		p.Lost = append(p.Lost, l)
	}
	p.Roll = readPeers(r, most)
	return p
}

// reportWanted is a new coordinator's question to every member: what do you own? Answering promises to refuse every
// fence below (Birth, Term, Floor).
type reportWanted struct {
	head
	Settings Settings
	Floor    uint32
	WantPast bool // the coordinator joined lately and needs to know of losses before that
}

func (reportWanted) kind() wire.Kind { return wire.KindReportWanted }

func (w reportWanted) append(b []byte) []byte {
	b = wire.AppendUvarint(appendSettings(w.head.append(b), w.Settings), uint64(w.Floor))
	return wire.AppendBool(b, w.WantPast)
}

func readReportWanted(r *wire.Reader) message {
	w := reportWanted{head: readHead(r)}
	w.Settings = readSettings(r, w.Type)
	w.Floor, w.WantPast = readU32(r), r.Bool()
	if r.Err() == nil && w.Floor == 0 {
		r.Fail(wire.ErrBadValue)
	}
	return w
}

// Reasons of a nak.
const (
	nakTerm     uint8 = 1 // Term is a higher term than that of the mail refused, and Coordinator holds it
	nakSettings uint8 = 2 // Have are the coordinator's settings, Got those of the registration refused
)

// nak refuses mail of a lower term, or a registration with other settings.
type nak struct {
	head
	Reason      uint8
	Coordinator peer.ID
	Have, Got   Settings
}

func (nak) kind() wire.Kind { return wire.KindRegisterNak }

func (n nak) append(b []byte) []byte {
	b = wire.AppendU8(n.head.append(b), n.Reason)
	if n.Reason == nakTerm {
		return peer.AppendID(b, n.Coordinator)
	}
	return appendSettings(appendSettings(b, n.Have), n.Got)
}

func readNak(r *wire.Reader) message {
	n := nak{head: readHead(r), Reason: r.U8()}
	switch n.Reason {
	case nakTerm:
		n.Coordinator = readPeer(r)
	case nakSettings:
		n.Have, n.Got = readSettings(r, n.Type), readSettings(r, n.Type)
		if r.Err() == nil && n.Have == n.Got {
			r.Fail(wire.ErrBadValue)
		}
	default:
		r.Fail(wire.ErrBadValue)
	}
	return n
}
