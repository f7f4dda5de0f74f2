// Real: what topics stand on in a process: a node of package kith.

package topic

import (
	"context"
	"iter"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/internal/runtime/footing"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/replicated"
)

// realNode is a node of package kith.
type realNode struct {
	ground.Real
	node *kith.Node
	d    *driver.Driver
}

// ID implements footing.Topics.
func (n *realNode) ID() kith.ID { return n.node.ID() }

// View implements footing.Topics.
func (n *realNode) View() *membership.View { return n.d.View() }

// Views implements footing.Topics.
func (n *realNode) Views(ctx context.Context) iter.Seq[*membership.View] {
	return func(yield func(*membership.View) bool) {
		for e := range n.node.Events(ctx) {
			switch e.Kind {
			case kith.MemberJoined, kith.MemberUp, kith.MemberDowned, kith.MemberRemoved:
				if !yield(n.d.View()) {
					return
				}
			}
		}
	}
}

// Err implements footing.Topics.
func (n *realNode) Err() error { return n.node.Err() }

// MaxPayload implements footing.Topics.
func (n *realNode) MaxPayload() int { return n.d.Config().MaxPayload }

// Crew implements footing.Topics.
func (n *realNode) Crew(t entity.Type) (footing.Crew, error) {
	pool := driver.NewPool(t, 1)
	if err := pool.Register(n.d); err != nil {
		return nil, err
	}
	return pool, nil
}

// Nodes implements footing.Topics.
func (n *realNode) Nodes(name string) (footing.Value, error) {
	h, err := replicated.Open(n.node, name, interest{})
	if err != nil {
		return nil, err
	}
	return held{h}, nil
}

// held is a footing.Value of such a node.
type held struct{ h *replicated.Handle[interest] }

// Load implements footing.Value.
func (v held) Load() any { return v.h.Get() }

// Update implements footing.Value.
func (v held) Update(ctx context.Context, all bool, change func(v any) any) error {
	level := replicated.Local
	if all {
		level = replicated.All
	}
	return v.h.Update(ctx, level, func(v interest, _ kith.ID) interest { return change(v).(interest) })
}

// Watch implements footing.Value.
func (v held) Watch(ctx context.Context) iter.Seq[any] {
	return func(yield func(any) bool) {
		for in := range v.h.Watch(ctx) {
			if !yield(in) {
				return
			}
		}
	}
}
