// The stories: what is done in each picture, and when.

package main

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/world"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
)

// seeds are the contact points of all nodes: the first three hosts.
var seeds = []int{0, 1, 2}

// fill sends to so many entities that every shard gets a home.
func fill(r *recorder, typ route.TypeID) error {
	for i := range 200 {
		if err := r.tell(0, typ, fmt.Sprintf("e%d", i), fmt.Sprintf("fill %d", i)); err != nil {
			return err
		}
	}
	return nil
}

// forming: three nodes find each other, a type gets its homes, a fourth node joins and gets its share, one leaves.
func forming() (*picture, error) {
	pic := &picture{title: "A cluster forms, grows and shrinks", tick: 5 * time.Second, rows: 12, gap: 16}
	r := record(4, 1, pic, setup.Config{})
	typ := r.declare("book", 12)
	for i := range 3 {
		r.w.After(time.Duration(i)*400*time.Millisecond, func() { r.w.Start(i, r.w.Seeds(seeds)) })
	}
	r.w.Advance(5 * time.Second)
	pic.note(r.w.Now, 0, "messages to entities of 12 shards: the coordinator gives each shard a home")
	if err := fill(r, typ); err != nil {
		return nil, err
	}
	r.w.Advance(5 * time.Second)
	pic.note(r.w.Now, 3, "a fourth node starts; each look at the balance gives it more of the shards")
	r.w.Start(3, r.w.Seeds(seeds))
	r.w.Advance(30 * time.Second)
	pic.note(r.w.Now, 1, "n2 leaves, and hands off its shards")
	r.w.Leave(r.w.Hosts[1].Process)
	r.w.Advance(5 * time.Second)
	return pic, r.done()
}

// handoff: a shard moves from node to node while three nodes send to its entity.
func handoff() (*picture, error) {
	pic := &picture{title: "A shard moves while messages go to it", tick: 10 * time.Millisecond, rows: 1, gap: 64,
		moves: true}
	r := record(3, 3, pic, setup.Config{Network: setup.Network{Delay: 2 * time.Millisecond}})
	typ := r.declare("book", 1)
	if missing := r.w.Form(); missing != "" {
		return nil, fmt.Errorf("not formed: %s", missing)
	}
	r.w.Advance(30 * time.Second)
	if err := r.tell(1, typ, "e", "first"); err != nil {
		return nil, err
	}
	r.w.Advance(time.Second)
	var failed error
	owner := -1
	for i := range pic.lanes {
		if spans := pic.lanes[i].shards[0]; len(spans) > 0 && spans[len(spans)-1].to < 0 {
			owner = i
		}
	}
	pic.from, pic.messages, pic.marks = r.w.Now, nil, nil
	r.every(4*time.Millisecond, 15, func(i int) {
		for n := range 3 {
			if err := r.tell(n, typ, "e", fmt.Sprintf("n%d %d", n, i)); err != nil {
				failed = err
			}
		}
	})
	r.w.After(14*time.Millisecond, func() {
		cmd := shard.MoveCommand{Type: typ, Shard: 0, To: r.w.Hosts[(owner+2)%3].Process.ID}
		failed = command(r.w, cmd)
	})
	r.w.Advance(70 * time.Millisecond)
	if failed != nil {
		return nil, failed
	}
	return pic, r.done()
}

// command gives a command to whichever node takes it, the coordinator.
func command(w *world.World, cmd any) (err error) {
	for _, p := range w.Running() {
		if err = p.Command(cmd); err == nil {
			return nil
		}
	}
	return err
}

// split: a partition of two and three nodes, the decision, the takeover, and the way back.
func split() (*picture, error) {
	pic := &picture{title: "A partition: the smaller side stops before its shards live elsewhere", tick: 5 * time.Second,
		rows: 15, gap: 16}
	r := record(5, 2, pic, setup.Config{})
	typ := r.declare("book", 15)
	if missing := r.w.Form(); missing != "" {
		return nil, fmt.Errorf("not formed: %s", missing)
	}
	if err := fill(r, typ); err != nil {
		return nil, err
	}
	r.w.Advance(2 * time.Second)
	pic.from, pic.marks = r.w.Now, nil
	r.w.Advance(3 * time.Second)
	pic.note(r.w.Now, 1, "the network breaks between n1, n2 and n3, n4, n5")
	cut(r.w, []int{0, 1}, []int{2, 3, 4})
	r.w.Advance(20 * time.Second)
	if err := tellFrom(r, 2, typ); err != nil {
		return nil, err
	}
	r.w.Advance(20 * time.Second)
	pic.note(r.w.Now, 0, "the network heals, and this node is started again")
	pic.note(r.w.Now, 1, "the network heals, and this node is started again")
	r.w.Net.Heal()
	r.w.Start(0, r.w.Seeds(seeds))
	r.w.Start(1, r.w.Seeds(seeds))
	r.w.Advance(17 * time.Second)
	return pic, r.done()
}

// tellFrom sends to all entities again, from a node that lives on.
func tellFrom(r *recorder, from int, typ route.TypeID) error {
	for i := range 200 {
		if err := r.tell(from, typ, fmt.Sprintf("e%d", i), fmt.Sprintf("again %d", i)); err != nil {
			return err
		}
	}
	return nil
}

// cut lets nothing through between two groups of hosts.
func cut(w *world.World, left, right []int) {
	for _, a := range left {
		for _, b := range right {
			w.Net.Cuts[a][b], w.Net.Cuts[b][a] = true, true
		}
	}
}
