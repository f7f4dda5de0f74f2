// From: sending to entities by the name of their type, from outside of handlers.

package kith

import (
	"context"
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/route"
)

// NodeSender sends from a node, from outside of handlers: it is a Sender. All methods are safe for concurrent use.
type NodeSender struct {
	ctx     context.Context
	d       *driver.Driver
	headers []byte
}

// From returns what sends from a node until ctx ends, as the handler of an HTTP request does. One may send many
// messages. ctx is kept; its values go nowhere.
func From(ctx context.Context, n *Node) *NodeSender { return &NodeSender{ctx: ctx, d: n.d} }

// With returns the sender of messages that go with headers, as Region.With does. They must not change.
func (s *NodeSender) With(headers []byte) *NodeSender { return &NodeSender{s.ctx, s.d, headers} }

// Context returns the context that From was given.
func (s *NodeSender) Context() context.Context { return s.ctx }

// region returns the region of a type, which the node has registered.
func (s *NodeSender) region(typ string) (*driver.Region, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, route.NotRun(fmt.Errorf("kith: not sent: %w", err))
	}
	if r := driver.Named(typ, s.d); r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("%w on this node: %.80q", ErrNotRegistered, typ)
}

// with returns the headers, nil for none.
func (s *NodeSender) with() *driver.Headers {
	if len(s.headers) == 0 {
		return nil
	}
	return &driver.Headers{B: s.headers}
}

// Tell is Region.Tell to a type by its name. Any worker of a Pool gets what has no id. ErrNotRegistered: this node has
// not registered it.
func (s *NodeSender) Tell(typ, id string, payload []byte) error {
	r, err := s.region(typ)
	if err != nil {
		return err
	}
	return driver.TellNamed(s.with(), r, id, payload)
}

// Ask is Region.Ask to a type by its name, until the context of From ends or d is over. Any worker of a Pool answers
// what has no id. ErrNotRegistered: this node has not registered it.
func (s *NodeSender) Ask(d time.Duration, typ, id string, payload []byte) ([]byte, error) {
	r, err := s.region(typ)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(s.ctx, d)
	defer cancel()
	return driver.AskNamed(ctx, r, s.with(), id, payload)
}
