// What is handed over: golden bytes, truncation at every byte, hostile bytes; and which nodes may answer.

package plane

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

var updateHanded = flag.Bool("update", false, "rewrite the golden file")

const handedShards = 8

var (
	handedType  = route.TypeOf("book")
	handedShard = route.ShardOf("dune", handedShards)
	handedAsker = peer.ID{Addr: peer.MustAddr("10.0.0.1:7000"), Inc: 11}
)

func handed(now time.Duration) []byte {
	e := wire.Envelope{Type: uint32(handedType), Shard: uint32(handedShard), Term: 3, Epoch: 7, ID: []byte("dune"),
		Payload: []byte("tell")}
	b := AppendUnhandled(nil, peer.ID{}, &e, now)
	e.Flags, e.Corr, e.Payload = wire.FlagAsk, 99, []byte("ask")
	b = AppendUnhandled(b, handedAsker, &e, now)
	e.Flags |= wire.FlagLimit | wire.FlagHeaders | wire.FlagParked
	e.Limit, e.Headers, e.Payload = Moment(now+1500*time.Millisecond), []byte("trace"), nil
	return AppendUnhandled(b, handedAsker, &e, now)
}

func readHanded(b []byte, now time.Duration) ([]Unhandled, error) {
	list, _, err := readAll(b, now)
	return list, err
}

func readAll(b []byte, now time.Duration) ([]Unhandled, []HandedState, error) {
	return ReadUnhandled(b, handedType, handedShard, handedShards, now)
}

// siblings returns ids of the shard.
func siblings(n int) (ids []string) {
	for i := 0; len(ids) < n; i++ {
		if id := fmt.Sprint("s", i); route.ShardOf(id, handedShards) == handedShard {
			ids = append(ids, id)
		}
	}
	return ids
}

// handedStates is messages and two states behind them.
func handedStates(now time.Duration) []byte {
	ids := siblings(2)
	return AppendState(AppendState(handed(now), ids[0], []byte("seven")), ids[1], nil)
}

// States travel behind the messages, and without any, in a format of their own; what has none keeps its bytes.
func TestStatesTravel(t *testing.T) {
	b := handedStates(5 * time.Second)
	golden := filepath.Join("testdata", "golden", "states.hex")
	if *updateHanded {
		require.NoError(t, os.WriteFile(golden, []byte(hex.EncodeToString(b)+"\n"), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), hex.EncodeToString(b)+"\n")
	ids := siblings(2)
	states := []HandedState{{ids[0], []byte("seven")}, {ids[1], []byte{}}}
	list, got, err := readAll(b, 0)
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.Equal(t, states, got)
	list, got, err = readAll(AppendState(nil, ids[0], []byte("seven")), 0)
	require.NoError(t, err)
	require.Empty(t, list)
	require.Equal(t, states[:1], got)
	require.Equal(t, leftFormat, handed(0)[0], "an earlier version reads it")
	for name, broken := range map[string][]byte{
		"twice":             AppendState(handedStates(0), ids[0], nil),
		"of another shard":  AppendState(handed(0), foreign(), nil),
		"of nobody":         AppendState(handed(0), "", nil),
		"in the old format": append([]byte{leftFormat}, b[1:]...),
		"before a message":  append(AppendState(nil, ids[0], nil), handed(0)[1:]...),
	} {
		before := bytes.Clone(broken)
		_, _, err := readAll(broken, time.Hour)
		require.ErrorIs(t, err, wire.ErrBadValue, name)
		require.Equal(t, before, broken, name)
	}
	for n := len(handed(0)) + 1; n < len(b); n++ {
		if n == len(b)-len(AppendState(nil, ids[1], nil))+1 {
			continue // between the two
		}
		_, _, err := readAll(b[:n:n], 0)
		var we *wire.Error
		require.ErrorAs(t, err, &we, "cut at %d", n)
	}
}

// States get what messages leave of a bound; where messages alone are beyond it nothing travels, and all is kept.
func TestStateRoom(t *testing.T) {
	require.Equal(t, 99, StateRoom(100, 0), "the format takes a byte")
	require.Equal(t, 40, StateRoom(100, 60))
	require.Equal(t, 100, StateRoom(100, 100))
	require.Equal(t, 100, StateRoom(100, 1000))
	st := entity.State{ID: strings.Repeat("i", route.MaxIDSize), Bytes: make([]byte, 1<<20)}
	require.LessOrEqual(t, len(AppendState(nil, st.ID, st.Bytes))-1, st.Size())
}

// What was not worked off travels with its asker, what is left of its time, and its headers (transfer-names-asker).
func TestUnhandledTravels(t *testing.T) {
	b := handed(5 * time.Second)
	golden := filepath.Join("testdata", "golden", "unhandled.hex")
	if *updateHanded {
		require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(hex.EncodeToString(b)+"\n"), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), hex.EncodeToString(b)+"\n")
	const there = 100 * time.Second // another node's clock
	list, err := readHanded(b, there)
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.True(t, list[0].Asker.IsZero())
	require.Equal(t, "tell", string(list[0].Envelope.Payload))
	require.Equal(t, "dune", string(list[0].Envelope.ID))
	require.Equal(t, handedAsker, list[1].Asker)
	require.Equal(t, uint64(99), list[1].Envelope.Corr)
	require.Zero(t, list[1].Envelope.Flags&wire.FlagLimit)
	require.Equal(t, there+1500*time.Millisecond, LimitAt(list[2].Envelope.Limit, there))
	require.Equal(t, "trace", string(list[2].Envelope.Headers))
}

// Whatever is broken is refused, and changes nothing.
func TestUnhandledRefusesNonsense(t *testing.T) {
	b := handed(time.Second)
	ends := map[int]bool{1: true}
	for at := range handedEnds(b) {
		ends[at] = true
	}
	for n := range b {
		_, err := readHanded(b[:n:n], time.Second)
		var we *wire.Error
		if !ends[n] {
			require.ErrorAs(t, err, &we, "cut at %d", n)
		}
	}
	for name, f := range map[string]func(e *wire.Envelope) (asker peer.ID){
		"another type":     func(e *wire.Envelope) peer.ID { e.Type++; return peer.ID{} },
		"another shard":    func(e *wire.Envelope) peer.ID { e.Shard++; return peer.ID{} },
		"another's entity": func(e *wire.Envelope) peer.ID { e.ID = []byte(foreign()); return peer.ID{} },
		"no asker":         func(e *wire.Envelope) peer.ID { e.Flags, e.Corr = wire.FlagAsk, 1; return peer.ID{} },
		"no correlation":   func(e *wire.Envelope) peer.ID { e.Flags = wire.FlagAsk; return handedAsker },
		"a tell with one":  func(e *wire.Envelope) peer.ID { e.Corr = 1; return peer.ID{} },
		"a large message":  func(e *wire.Envelope) peer.ID { e.Flags = wire.FlagBulk; return peer.ID{} },
		"one that waits":   func(e *wire.Envelope) peer.ID { e.Flags = wire.FlagWait; return peer.ID{} },
		"a tell's limit":   func(e *wire.Envelope) peer.ID { e.Flags = wire.FlagLimit; return peer.ID{} },
	} {
		e := wire.Envelope{Type: uint32(handedType), Shard: uint32(handedShard), ID: []byte("dune")}
		asker := f(&e)
		before := AppendUnhandled(handed(time.Second), asker, &e, time.Second)
		b := append([]byte(nil), before...)
		_, err := readHanded(b, time.Hour)
		require.Error(t, err, name)
		require.Equal(t, before, b, name)
	}
	_, err := readHanded(append([]byte{9}, b[1:]...), 0)
	require.ErrorIs(t, err, wire.ErrBadValue)
}

// foreign returns an id of another shard.
func foreign() string {
	for id := "a"; ; id += "a" {
		if route.ShardOf(id, handedShards) != handedShard {
			return id
		}
	}
}

// handedEnds yields where entries end: bytes that were cut there are whole.
func handedEnds(b []byte) map[int]bool {
	ends := map[int]bool{}
	for n := 1; n <= len(b); n++ {
		if _, err := readHanded(append([]byte(nil), b[:n]...), 0); err == nil {
			ends[n] = true
		}
	}
	return ends
}

func FuzzUnhandled(f *testing.F) {
	f.Add(handed(time.Second))
	f.Add(handedStates(time.Second))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := spent.Bytes()
		kept := bytes.Clone(b)
		list, states, err := readAll(b, 0)
		if spent.Within(t, before, 64*len(b)+1024); err != nil {
			require.Equal(t, kept, b)
			return
		}
		var again []byte
		for i := range list {
			again = AppendUnhandled(again, list[i].Asker, &list[i].Envelope, 0)
		}
		for _, st := range states {
			again = AppendState(again, st.ID, st.State)
		}
		if len(list)+len(states) > 0 {
			got, told, err := readAll(again, 0)
			require.NoError(t, err)
			require.Equal(t, len(list), len(got))
			require.Equal(t, states, told)
		}
	})
}

// A node to which the shard has moved since may answer, be it by way of several; others may not, nor one to which it
// moved before the ask went to its home (transfer-names-asker).
func TestWhoMayAnswer(t *testing.T) {
	at := func(n uint64) peer.ID { return peer.ID{Addr: peer.MustAddr("10.0.0.9:1"), Inc: n} }
	f := func(epoch uint32) route.Fence { return route.MakeFence(1, 1, epoch) }
	var h Successors
	require.False(t, h.May(peer.ID{}, f(1)))
	h.Add(f(5), at(2))
	h.Add(f(5), at(2))
	h.Add(f(7), at(3))
	require.Equal(t, 2, h.next)
	require.True(t, h.May(at(2), f(5)))
	require.True(t, h.May(at(3), f(5)))
	require.True(t, h.May(at(3), f(7)))
	require.False(t, h.May(at(2), f(7)), "it had the shard before")
	require.False(t, h.May(at(4), f(5)), "a stranger")
	for i := range uint32(MaxSuccessors) {
		h.Add(f(10+i), at(uint64(10+i)))
	}
	require.False(t, h.May(at(3), f(5)), "the oldest are forgotten")
	require.True(t, h.May(at(13), f(5)))

	s := flow.MakeSlot(flow.NewParking(0, 1<<20, time.Minute, nil))
	s.Resolve(false, at(9), f(9))
	require.True(t, IsNextHome(&s, at(9), f(8)), "the home that is known now")
	require.False(t, IsNextHome(&s, at(9), f(9)), "it was asked itself")
	require.False(t, IsNextHome(&s, at(8), f(8)))
	s.Resolve(true, at(9), f(9))
	require.False(t, IsNextHome(&s, at(9), f(8)), "it lives here")
	s = flow.MakeSlot(flow.NewParking(0, 1<<20, time.Minute, nil))
	require.False(t, HasMoved(&s, f(5)))
	s.Resolve(false, at(2), f(6))
	require.True(t, HasMoved(&s, f(5)))
	require.False(t, HasMoved(&s, f(6)))
}

// Answers that come before the news of a move wait for it, within bounds; each counts once (transfer-names-asker).
func TestEarlyAnswers(t *testing.T) {
	var l EarlyAnswers
	payload := []byte("one")
	l.Keep(&EarlyAnswer{Payload: make([]byte, MaxEarlyPayload+1)})
	require.Zero(t, l.Len())
	for corr := range uint64(MaxEarlyAnswers + 2) {
		l.Keep(&EarlyAnswer{Corr: corr, Payload: payload})
	}
	payload[0] = 'x'
	require.Equal(t, MaxEarlyAnswers, l.Len())
	verdicts := map[uint64]Verdict{2: Due, 3: Late, 5: Due}
	look := func() []EarlyAnswer {
		return l.Look(func(a *EarlyAnswer) Verdict {
			require.GreaterOrEqual(t, a.Corr, uint64(2), "the oldest went")
			if v, ok := verdicts[a.Corr]; ok {
				return v
			}
			return Foreign
		})
	}
	due := look()
	require.Len(t, due, 2)
	require.Equal(t, EarlyAnswer{Corr: 2, Payload: []byte("one")}, due[0])
	require.Equal(t, uint64(5), due[1].Corr)
	require.Equal(t, MaxEarlyAnswers-3, l.Len())
	require.Empty(t, look())
	require.Equal(t, MaxEarlyAnswers-3, l.Len())

	more := EarlyAnswers{}
	more.Add(&l)
	require.Equal(t, []int{MaxEarlyAnswers - 3, 0}, []int{more.Len(), l.Len()})

	a := EarlyAnswer{Asked: route.MakeFence(1, 1, 1)}
	require.Equal(t, Due, a.Judge(Due, a.Asked))
	require.Equal(t, Late, a.Judge(Due, route.MakeFence(1, 1, 2)), "the ask was sent to another owner meanwhile")
}
