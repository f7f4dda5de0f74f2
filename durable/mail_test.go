// Tests of the mail of a shard as a machine.

package durable

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/store"
)

// kept is a line that keeps what is asked.
type kept struct {
	done map[string]func([]byte, error)
}

func (*kept) Ask(context.Context, []byte, string, []byte) ([]byte, error) {
	return nil, errors.ErrUnsupported
}
func (*kept) Tell(string, []byte) error { return errors.ErrUnsupported }

func (l *kept) AskFunc(_ []byte, _ time.Duration, id string, _ []byte, done func([]byte, error)) error {
	l.done[id] = done
	return nil
}

// answers answers all that is asked of receivers, one after the other.
func (l *kept) answers(answer []byte, err error) (n int) {
	all := l.done
	l.done = map[string]func([]byte, error){}
	for _, done := range all { // no order shows
		done(answer, err)
	}
	return len(all)
}

// TestSilentReceiversLeaveRoom: parcels to receivers that have not answered take at most half of what may be under way,
// so that others go at once, though many more such parcels are due (DUR-1).
func TestSilentReceiversLeaveRoom(t *testing.T) {
	l, o := &kept{done: map[string]func([]byte, error){}}, newOffice(ground.Real{})
	o.knowsType("a", counter{line: l})
	m := &mail{d: &mailroom{ground: ground.Real{}, name: "a", seen: DefaultSeenFor, office: o},
		shard: store.Shard{Type: "a"}, bell: make(chan struct{}, 1), boxes: map[string]*box{}}
	now := time.Now()
	parcelTo := func(id string) []*parcel {
		return []*parcel{{number: 1, typ: "a", id: id, made: now.UnixMilli()}}
	}
	for i := range 2 * mostUnderWay {
		m.set(fmt.Sprint("s", i), 1, parcelTo(fmt.Sprint("silent", i)))
	}
	for range 2 { // the first time nobody knows that they are silent
		m.turn(now)
		require.Equal(t, mostUnderWay, l.answers(nil, errors.New("silence")))
	}
	now = now.Add(time.Minute)
	m.turn(now)
	require.Len(t, l.done, mostAgain)
	m.set("h", 1, parcelTo("healthy"))
	m.turn(now)
	require.Contains(t, l.done, "healthy")
	require.Equal(t, mostAgain+1, l.answers(outcomeHandled.tells(nil), nil))
	require.Zero(t, m.repeat)
	m.turn(now.Add(hold))
	require.NotEmpty(t, l.done, "the next ones go")
}

// TestOutboxesAreNotWaitedFor: a store that does not answer which outboxes there are is asked again: it is waited for
// no longer than for any call (DUR-1).
func TestOutboxesAreNotWaitedFor(t *testing.T) {
	s := store.Memory()
	s.Fail(func(store.Call) store.Fate { return store.Fate{Before: make(chan struct{})} })
	m := &mail{d: &mailroom{store: s, ground: ground.Real{}, patience: time.Millisecond}, boxes: map[string]*box{},
		shard: store.Shard{Type: "a"}}
	require.ErrorIs(t, m.scan(t.Context()), store.ErrUnknown)
}
