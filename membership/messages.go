// Messages: the bodies of all small membership messages. Each names the incarnation it is meant for, so that mail for
// an earlier process at an address is recognised.

package membership

import (
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

const maxReasonSize = 256 // bytes of a refusal's text

// check fails r unless the value is in range and the order holds.
func check(r *wire.Reader, value, order bool) {
	switch {
	case r.Err() != nil:
	case !value:
		r.Fail(wire.ErrBadValue)
	case !order:
		r.Fail(wire.ErrBadOrder)
	}
}

// envelope opens every gossip message: for which incarnation it is, and of which cluster it speaks.
type envelope struct{ to, cluster uint64 }

func appendEnvelope(b []byte, e envelope) []byte {
	return wire.AppendU64(wire.AppendU64(b, e.to), e.cluster)
}

func readEnvelope(r *wire.Reader) envelope { return envelope{r.U64(), r.U64()} }

// statusBody (32 bytes): what a converged cluster exchanges.
type statusBody struct {
	envelope
	digest, seen gossip.Digest
}

func appendStatus(b []byte, s statusBody) []byte {
	return wire.AppendU64(wire.AppendU64(appendEnvelope(b, s.envelope), uint64(s.digest)), uint64(s.seen))
}

func readStatus(body []byte) (statusBody, error) {
	r := wire.NewReader(wire.KindStatus, body)
	s := statusBody{readEnvelope(&r), gossip.Digest(r.U64()), gossip.Digest(r.U64())}
	return s, r.Done()
}

// versionBody carries a clock, or asks a node with another digest for its state.
type versionBody struct {
	envelope
	digest gossip.Digest
	want   bool
	clock  gossip.Clock // empty when want
}

func appendVersion(b []byte, v versionBody) []byte {
	b = wire.AppendBool(wire.AppendU64(appendEnvelope(b, v.envelope), uint64(v.digest)), v.want)
	return gossip.AppendClock(b, v.clock)
}

func readVersion(body []byte) (versionBody, error) {
	r := wire.NewReader(wire.KindVersion, body)
	v := versionBody{readEnvelope(&r), gossip.Digest(r.U64()), r.Bool(), gossip.ReadClock(&r, cluster.MaxMembers)}
	return v, r.Done()
}

// seenBody carries the seen set of the version named by digest; reply asks for the other's.
type seenBody struct {
	envelope
	digest gossip.Digest
	reply  bool
	seen   gossip.Seen
}

func appendSeenBody(b []byte, s seenBody) []byte {
	b = wire.AppendBool(wire.AppendU64(appendEnvelope(b, s.envelope), uint64(s.digest)), s.reply)
	return gossip.AppendSeen(wire.AppendUvarint(b, uint64(s.seen.Len())), s.seen)
}

func readSeenBody(body []byte) (seenBody, error) {
	r := wire.NewReader(wire.KindSeen, body)
	s := seenBody{envelope: readEnvelope(&r), digest: gossip.Digest(r.U64()), reply: r.Bool()}
	n := r.Count(0, cluster.MaxMembers)
	if r.Err() == nil {
		s.seen = gossip.ReadSeen(&r, n)
	}
	return s, r.Done()
}

// exitBody says that an exiting member has finished what it had to do.
func readExitDone(body []byte) (envelope, error) {
	r := wire.NewReader(wire.KindExitDone, body)
	e := readEnvelope(&r)
	return e, r.Done()
}

// noteBody tells an incarnation that it was removed: its tombstone, how long ago, and how the sender's side of the
// cluster stands, for the case that both sides removed each other.
type noteBody struct {
	envelope
	tomb   members.Tombstone // of the receiver; its id does not travel
	age    uint64            // milliseconds since the teller learnt of the removal
	up     uint32            // Up members of the teller's view
	lowest peer.ID
}

func appendNote(b []byte, n noteBody) []byte {
	b = wire.AppendU64(append(appendEnvelope(b, n.envelope), byte(n.tomb.Last)), n.age)
	b = peer.AppendID(wire.AppendU32(b, n.up), n.lowest)
	return peer.AppendID(append(b, byte(n.tomb.Cause)), n.tomb.By)
}

func readNote(body []byte) (noteBody, error) {
	r := wire.NewReader(wire.KindRemovedNote, body)
	n := noteBody{envelope: readEnvelope(&r)}
	n.tomb.Last, n.age, n.up, n.lowest = cluster.Status(r.U8()), r.U64(), r.U32(), peer.ReadID(&r)
	n.tomb.Cause, n.tomb.By = cluster.Cause(r.U8()), peer.ReadID(&r)
	check(&r, (n.tomb.Last == cluster.Exiting || n.tomb.Last == cluster.Down) && n.tomb.Cause.Known(), true)
	return n, r.Done()
}

// probeAckBody says that the sender is a member. A challenge that is not zero asks for a fresh join that repeats it:
// proof that the joiner lives now, wanted before another incarnation at its address is displaced.
type probeAckBody struct {
	to, nonce, cluster, birth, challenge uint64
	settings                             []Setting // of the member
}

func appendProbeAck(b []byte, a probeAckBody) []byte {
	for _, v := range [...]uint64{a.to, a.nonce, a.cluster, a.birth, a.challenge} {
		b = wire.AppendU64(b, v)
	}
	return appendSettings(b, a.settings)
}

func readProbeAck(body []byte) (probeAckBody, error) {
	r := wire.NewReader(wire.KindJoinProbeAck, body)
	a := probeAckBody{r.U64(), r.U64(), r.U64(), r.U64(), r.U64(), readSettings(&r)}
	return a, r.Done()
}

func readProbe(body []byte) (nonce uint64, err error) {
	r := wire.NewReader(wire.KindJoinProbe, body)
	nonce = r.U64()
	return nonce, r.Done()
}

func readProbeNak(body []byte) (to, nonce uint64, err error) {
	r := wire.NewReader(wire.KindJoinProbeNak, body)
	to, nonce = r.U64(), r.U64()
	return to, nonce, r.Done()
}

// joinBody asks to be admitted. It names the joiner, because a contact hands it on to the leader.
type joinBody struct {
	nonce, challenge uint64
	id               peer.ID
	roles            []string
	version          string // of the application, may be empty
	settings         []Setting
	dead             uint64 // an incarnation at the address of id that is proven dead; zero: none
}

func appendJoin(b []byte, j joinBody) []byte {
	b = peer.AppendID(wire.AppendU64(wire.AppendU64(b, j.nonce), j.challenge), j.id)
	b = wire.AppendUvarint(b, uint64(len(j.roles)))
	for _, role := range j.roles {
		b = wire.AppendString(b, role)
	}
	return appendSettings(wire.AppendString(b, j.version), withClaim(j.settings, j.dead))
}

func readJoin(body []byte) (joinBody, error) {
	r := wire.NewReader(wire.KindJoin, body)
	j := joinBody{nonce: r.U64(), challenge: r.U64(), id: peer.ReadID(&r)}
	check(&r, !j.id.Addr.IsZero() && j.id.Inc != 0, true)
	j.roles = members.ReadStrings(&r, cluster.MaxRoles, cluster.MaxRoleSize)
	j.version = r.String(cluster.MaxAppVersion)
	j.settings, j.dead = claimOf(readSettings(&r))
	return j, r.Done()
}

// refusal says why a join is refused. Reasons below refuseForGood may pass; the joiner asks again.
type refusal uint8

const (
	refuseBusy    refusal = 1  // the asked member is leaving or down itself
	refuseFull    refusal = 2  // the cluster has its greatest size
	refuseStop    refusal = 3  // the cluster prepares for a full shutdown
	refuseForGood refusal = 64 // from here on: this incarnation will never be admitted
	refuseRemoved refusal = 65 // it was a member and was removed
	refuseDown    refusal = 66 // it is a member and is Down
	refuseSetting refusal = 68 // a setting that must agree does not
	refuseTwin    refusal = 67 // it claims the address of the member it asks
)

type refusedBody struct {
	to, nonce uint64
	code      refusal
	reason    string
}

func appendRefused(b []byte, f refusedBody) []byte {
	return wire.AppendString(append(wire.AppendU64(wire.AppendU64(b, f.to), f.nonce), byte(f.code)), f.reason)
}

func readRefused(body []byte) (refusedBody, error) {
	r := wire.NewReader(wire.KindJoinRefused, body)
	f := refusedBody{r.U64(), r.U64(), refusal(r.U8()), r.String(maxReasonSize)}
	check(&r, f.code != 0, true)
	f.reason = wire.Printable(f.reason)
	return f, r.Done()
}

// stateBody is KindGossip (tag: the cluster) and KindWelcome (tag: the nonce): the digest of a version, the seen set,
// which changes often, and the packed version, which does not.
type stateBody struct {
	to, tag uint64
	digest  gossip.Digest
	seen    gossip.Seen
	packed  members.Packed
}

func appendStateBody(b []byte, s stateBody) []byte {
	b = wire.AppendU64(wire.AppendU64(wire.AppendU64(b, s.to), s.tag), uint64(s.digest))
	b = gossip.AppendSeen(wire.AppendUvarint(b, uint64(s.seen.Len())), s.seen)
	return members.AppendPacked(b, s.packed)
}

// readStateBody leaves the packed bytes as a view into body.
func readStateBody(kind wire.Kind, body []byte) (stateBody, error) {
	r := wire.NewReader(kind, body)
	s := stateBody{to: r.U64(), tag: r.U64(), digest: gossip.Digest(r.U64())}
	if n := r.Count(0, cluster.MaxMembers); r.Err() == nil {
		s.seen = gossip.ReadSeen(&r, n)
	}
	s.packed = members.ReadPacked(&r)
	return s, r.Done()
}

// readState unpacks and reads the state in a body; the version that this node holds needs neither. The version keeps
// the packed form that it came in.
func (c *core) readState(kind wire.Kind, b *stateBody) (*members.State, error) {
	var held *members.Version
	if c.st != nil {
		held = c.st.Version
	}
	v, err := c.store.Read(kind, b.digest, b.packed, held)
	if err != nil {
		return nil, err
	}
	if b.seen.Len() != len(v.Members) {
		return nil, &wire.Error{Kind: kind, Offset: 24, Err: wire.ErrBadValue}
	}
	return v.SeenBy(b.seen), nil
}

// PlainBody returns body with its state uncompressed, so that traces hash what was said and not how it was packed.
// Bodies that hold no compressed state, or are not valid, come back as they are; else the result is a new slice.
func PlainBody(kind wire.Kind, body []byte) []byte {
	if kind != wire.KindGossip && kind != wire.KindWelcome {
		return body
	}
	s, err := readStateBody(kind, body)
	if err != nil {
		return body
	}
	plain, ok := s.packed.Plain(kind)
	if !ok {
		return body
	}
	s.packed = plain
	return appendStateBody(nil, s)
}
