// Digest: what a node answers to a verb in 32 bits, by which a replay notices that it goes another way.

package flight

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// digest gathers what one Drain hands over, with the errors of the verbs before it.
type digest struct {
	errors uint32
	b      []byte
}

// failed notes how a verb ended.
func (d *digest) failed(err error) {
	d.errors <<= 1
	if err != nil {
		d.errors |= 1
	}
}

func (d *digest) number(n uint64)     { d.b = binary.AppendUvarint(d.b, n) }
func (d *digest) id(id peer.ID)       { d.b = peer.AppendID(d.b, id) }
func (d *digest) fence(f route.Fence) { d.b = append(d.b, f[:]...) }

func (d *digest) mail(list []peer.Mail) {
	d.number(uint64(len(list)))
	for i := range list {
		d.id(list[i].To)
		d.number(uint64(list[i].Kind))
		body := list[i].Body
		n := contentOf(list[i].Kind, body)
		d.number(xxhash.Sum64(body[:len(body)-n]) + uint64(n))
	}
}

// sum returns the digest and begins the next one.
func (d *digest) sum(e *node.Effects) uint32 {
	d.b = d.b[:0]
	d.number(uint64(d.errors))
	d.errors = 0
	d.view(e.View)
	if s := e.Suspend; s != nil {
		d.b = append(d.b, truth(s.On), truth(s.Resolver))
		d.b = append(d.b, s.Why...)
	}
	for i := range e.Events {
		d.number(uint64(e.Events[i].Kind))
		d.id(e.Events[i].Member.ID)
	}
	d.shards(e)
	d.mail(e.Mail)
	d.mail(e.Untold)
	if end := e.Ended; end != nil {
		d.number(uint64(end.Kind))
		d.b = append(d.b, end.Reason...)
	}
	for i := range e.Decisions {
		d.b = append(d.b, e.Decisions[i].String()...)
	}
	for i := range e.ResolverEvents {
		d.b = append(d.b, e.ResolverEvents[i].Text...)
	}
	for i := range e.Lease {
		d.number(e.Lease[i].Op)
	}
	return uint32(xxhash.Sum64(d.b))
}

func (d *digest) view(v *membership.View) {
	if v == nil {
		d.number(0)
		return
	}
	d.number(uint64(len(v.Members)) + 1)
	for i := range v.Members {
		d.id(v.Members[i].ID)
		d.number(uint64(v.Members[i].Status))
	}
	d.number(uint64(len(v.Unreachable)))
	d.id(v.Leader)
}

func (d *digest) shards(e *node.Effects) {
	for i := range e.Hosts {
		o := &e.Hosts[i]
		d.number(uint64(o.Type)<<32 | uint64(o.Shard))
		d.fence(o.Fence)
		d.b = append(d.b, truth(o.Stop), truth(o.Abandon))
		d.number(uint64(len(o.Left)))
	}
	for i := range e.Routes {
		c := &e.Routes[i]
		d.number(uint64(c.Type)<<32 | uint64(c.Shard))
		d.number(uint64(c.State))
		d.id(c.Home)
		d.fence(c.Fence)
	}
	for i := range e.Marks {
		m := &e.Marks[i]
		d.number(uint64(m.Type)<<32 | uint64(m.Shard))
		d.id(m.To)
	}
	d.number(uint64(len(e.Untaken)))
	for i := range e.Answers {
		d.number(e.Answers[i].Nonce)
	}
	for i := range e.ShardEvents {
		ev := &e.ShardEvents[i]
		d.number(uint64(ev.Kind))
		d.number(uint64(ev.Type)<<32 | uint64(ev.Shard))
		d.id(ev.Home)
	}
}
