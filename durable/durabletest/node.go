// Nodes: what the code of durable entities stands on in a simulated process: its coroutines and virtual time.

package durabletest

import (
	"context"
	"time"

	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/internal/sim/virtual"
	"github.com/kith-io/kith/internal/sim/world"
)

// node is a ground.Node.
type node struct {
	*virtual.Ground
	kit  *Kit
	p    *world.Process
	kept any
}

// Kept implements ground.Node.
func (n *node) Kept() *any { return &n.kept }

// Line implements ground.Node.
func (n *node) Line(typ string) ground.Line { return &line{n, typ} }

// line is a ground.Line.
type line struct {
	n   *node
	typ string
}

// region returns that of the type.
func (l *line) region() (*world.Region, error) { return virtual.RegionOf(l.n.p, l.typ) }

// AskFunc implements ground.Line.
func (l *line) AskFunc(headers []byte, d time.Duration, id string, body []byte, done func([]byte, error)) error {
	r, err := l.region()
	if err != nil {
		return err
	}
	_, err = r.AskWith(headers, d, id, body, done)
	return err
}

// Tell implements ground.Line.
func (l *line) Tell(id string, body []byte) error {
	r, err := l.region()
	if err != nil {
		return err
	}
	_, err = r.Send(id, body, 0)
	return err
}

// Ask implements ground.Line: a coroutine is put aside, a test lets time pass.
func (l *line) Ask(ctx context.Context, headers []byte, id string, body []byte) (reply []byte, err error) {
	return l.n.Ground.Ask(ctx, l.region, headers, id, body)
}
