// Names: how handlers send to other durable entities, and hear of what did not arrive.

package durable

import (
	"errors"
	"fmt"
	"sync"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/route"
)

// Name is the name of a durable type of entities that handle messages M. A constant of it is what handlers send by.
type Name[M any] string

// Sender is a *Tx.
type Sender interface{ post() *post }

// Send has m leave with the commit of tx, to the entity id of the type, which handles it once: docs/durable.md. The
// type must be registered on this node. Messages of one entity to another are handled in order. What is wrong ends the
// message that is being handled when its handler returns, and nothing of it is written: ErrOutboxFull, ErrTooLarge,
// ErrNoType, kith.ErrBadPayload, kith.ErrBadID. m is encoded before Send returns.
func (n Name[M]) Send(tx Sender, id string, m *M) {
	p := tx.post()
	if p.failed != nil {
		return
	}
	codec, err := codecOf(p.office, n)
	if err != nil {
		p.failed = fails(codeNoType, err)
		return
	}
	body, err := codec.Append(nil, m)
	if err == nil {
		err = route.CheckID(id)
	}
	if err != nil {
		p.failed = fails(codeBadSend, err)
		return
	}
	p.add(&parcel{typ: string(n), id: id, made: p.office.ground.Wall().UnixMilli(), body: body})
}

// Of returns the message of what was not delivered, and whether it was for an entity of this type.
func (n Name[M]) Of(u *Undelivered) (*M, bool) {
	if u.Type != string(n) {
		return nil, false
	}
	codec, err := codecOf(u.office, n)
	if err != nil {
		return nil, false
	}
	m := new(M)
	return m, codec.ParseInto(u.Body, m) == nil
}

// Undelivered is a message that Name.Send took, and that was not handled, as far as is known. It is valid until
// Type.Undelivered returns.
type Undelivered struct {
	// Type and ID name the entity that it was for.
	Type, ID string
	// Body is the message as it was encoded; Name.Of decodes it.
	Body []byte
	// Err says why: ErrRejected with the text of the receiver's handler, or ErrExpired.
	Err error
	// MayHaveRun is whether it may have been handled all the same. It is false only where the receiver has committed that
	// it was not, and never will be: only then what it was to do may be done otherwise, as a refund.
	MayHaveRun bool

	office *office
}

// poster is an instance.
type poster interface{ posts() *post }

// post is what a handler sends.
type post struct {
	office *office
	count  int // parcels in the outbox, those that are sent by this message among them
	bytes  int
	room   bool // the shard has room for more
	sent   []*parcel
	failed *failure // what is wrong with them
}

// add takes a parcel, or says that the outbox is full.
func (p *post) add(a *parcel) {
	switch p.count, p.bytes = p.count+1, p.bytes+a.size(); {
	case a.size() > MaxOutboxBytes:
		p.failed = fails(codeTooLarge, fmt.Errorf("a message of %d bytes to send, with what is beside it; must be at most %d",
			a.size(), MaxOutboxBytes))
	case p.count > MaxOutbox, p.bytes > MaxOutboxBytes:
		p.failed = fails(codeOutboxFull, fmt.Errorf("%d messages, %d bytes; must be at most %d and %d", p.count, p.bytes,
			MaxOutbox, MaxOutboxBytes))
	case !p.room:
		p.failed = fails(codeOutboxFull, errors.New("those of its shard together"))
	default:
		p.sent = append(p.sent, a)
	}
}

// office knows the durable types of one node.
type office struct {
	ground ground.Ground

	mu    sync.Mutex
	types map[string]counter
}

// counter is one of them.
type counter struct {
	line  ground.Line
	codec any // a kith.Codec[M]
}

// roster is the offices of the nodes of the process.
type roster struct {
	mu sync.Mutex
	of map[*kith.Node]*office
}

// offices are all of them.
var offices = roster{of: map[*kith.Node]*office{}}

// officeOf returns that of a node, which forgets it when it has ended.
func officeOf(n *kith.Node) *office {
	offices.mu.Lock()
	defer offices.mu.Unlock()
	o := offices.of[n]
	if o == nil {
		o = newOffice(ground.Real{})
		offices.of[n] = o
		go func() {
			<-n.Done()
			offices.mu.Lock()
			defer offices.mu.Unlock()
			delete(offices.of, n)
		}()
	}
	return o
}

func newOffice(g ground.Ground) *office { return &office{ground: g, types: map[string]counter{}} }

// knowsType makes a type known.
func (o *office) knowsType(name string, c counter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.types[name] = c
}

// typeNamed returns a type.
func (o *office) typeNamed(name string) (counter, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c, ok := o.types[name]
	return c, ok
}

// codecOf returns what encodes the messages of a type.
func codecOf[M any](o *office, n Name[M]) (kith.Codec[M], error) {
	c, ok := o.typeNamed(string(n))
	if !ok {
		return nil, fmt.Errorf("%.64q is not registered on this node", string(n))
	}
	codec, ok := c.codec.(kith.Codec[M])
	if !ok {
		return nil, fmt.Errorf("%.64q has messages of another type than %T", string(n), *new(M))
	}
	return codec, nil
}
