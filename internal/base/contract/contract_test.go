// The check itself: it passes a machine that keeps the contract and notices each way of breaking it.

package contract

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type effects struct {
	Mail []string
	View *int
}

// toy is a machine with a Drain that can be made to break the contract.
type toy struct {
	known map[string][]int
	next  time.Duration
	out   effects
	spoil func(m *toy, out *effects)
}

func (m *toy) Tick(now time.Duration)                  { m.out.Mail = append(m.out.Mail, now.String()) }
func (m *toy) Do(time.Duration, string) error          { return nil }
func (m *toy) Next() (deadline time.Duration, ok bool) { return m.next, true }
func (m *toy) Peek() effects                           { return m.out }
func (m *toy) Drain(out *effects) {
	*out, m.out = m.out, effects{}
	if m.spoil != nil {
		m.spoil(m, out)
	}
}

// failing takes the failure of a check.
type failing struct{ said string }

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

// broken returns what the check says of a toy.
func broken(spoil func(m *toy, out *effects)) (said string) {
	m := &toy{known: map[string][]int{"a": {1}, "b": {2, 3}}, next: time.Second, spoil: spoil}
	m.Tick(time.Second)
	f := &failing{}
	defer func() {
		if r := recover(); r != nil && r != any(f) {
			panic(r)
		}
		said = f.said
	}()
	var out effects
	Drain(f, Stepped[string, effects](m), &out, "out", "spoil")
	return ""
}

// TestDrainOnlyHandsOver feeds the check machines that break the contract.
func TestDrainOnlyHandsOver(t *testing.T) {
	require.Empty(t, broken(nil))
	require.Contains(t, broken(func(m *toy, _ *effects) { m.known["b"][1]++ }), "changes what it knows")
	require.Contains(t, broken(func(m *toy, _ *effects) { m.next++ }), "moves the next deadline")
	require.Contains(t, broken(func(_ *toy, out *effects) { out.View = new(int) }), "a second Drain")
	require.Contains(t, broken(func(_ *toy, out *effects) { out.Mail = out.Mail[:0] }), "Peek shows")
	require.Contains(t, broken(func(m *toy, out *effects) { m.out.Mail = out.Mail }), "a second Drain")
}

// TestDigest holds what a digest sees and what it does not.
func TestDigest(t *testing.T) {
	type node struct {
		next *node
		name string
		f    func()
		any  any
		m    map[int]string
		raw  []byte
		f64  float64
	}
	one := func() *node {
		n := &node{name: "a", any: uint8(1), m: map[int]string{1: "x", 2: "y"}, raw: []byte{1, 2}, f64: 1}
		n.next = &node{name: "b", next: n}
		return n
	}
	same := Digest(one())
	require.Equal(t, same, Digest(one()))
	for name, change := range map[string]func(n *node){
		"name": func(n *node) { n.name = "c" }, "below": func(n *node) { n.next.name = "c" },
		"function": func(n *node) { n.f = func() {} }, "interface": func(n *node) { n.any = uint8(2) },
		"map": func(n *node) { n.m[2] = "z" }, "bytes": func(n *node) { n.raw[1]++ }, "float": func(n *node) { n.f64++ },
		"nil": func(n *node) { n.next = nil },
	} {
		n := one()
		change(n)
		require.NotEqual(t, same, Digest(n), name)
	}
	n := one()
	n.name = "c"
	require.Equal(t, Digest(one(), "name"), Digest(n, "name"))
}
