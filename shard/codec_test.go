// Codecs: round trip, golden bytes, truncation at every byte, bad values, and what a decoder may allocate.

package shard

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/internal/core/loads"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

var update = flag.Bool("update", false, "rewrite golden files")

// samples holds one message of every kind and shape.
func samples() map[string]message {
	a := peer.ID{Addr: peer.MustAddr("10.0.0.1:7000"), Inc: 11}
	b := peer.ID{Addr: peer.MustAddr("[fd00::2]:7000"), Inc: 12}
	c := peer.ID{Addr: peer.MustAddr("node-c:7000"), Inc: 13}
	other := Settings{Name: orders.Name, Shards: 31, Role: "r"}
	list := []held{{0, fence(1, 2)}, {1, fence(2, 300)}, {29, fence(1, 70_000)}}
	m := map[string]message{
		"register": register{head: at(3), Settings: orders, Hosts: true, Knows: true},
		"report": register{head: at(3), Settings: orders, Hosts: true, Knows: true, Report: true, Floor: 9, Mask: 1,
			Owned: list},
		"report-past": register{head: at(3), Settings: orders, Report: true, Floor: 9, Mask: ^uint64(0), Owned: []held{},
			HasPast: true, Past: recentlyLost{Complete: true, Lost: []loss{{a, 1500 * time.Millisecond, false}, {c, 0, true}},
				Roll: peer.SetOf(a, b)}},
		"report-wanted": reportWanted{head: at(3), Settings: other, Floor: 9, WantPast: true},
		"nak-term":      nak{head: at(4), Reason: nakTerm, Coordinator: b},
		"nak-settings":  nak{head: at(3), Reason: nakSettings, Have: orders, Got: other},
		"ask-homes":     ask{at(3), []route.ShardID{0, 2, 29}},
		"homes": homes{head: at(3), Peers: peer.SetOf(a, b), Entries: []home{{list[0], 1}, {list[1], 0},
			{list[2], 1}}},
		"leave-notice": leaveNotice{wire.KindLeaveNotice, testBirth, recentlyLost{Lost: []loss{}, Roll: peer.Set{}}},
		"leave-notice-past": leaveNotice{wire.KindLeaveNotice, testBirth, recentlyLost{Complete: true, Roll: peer.SetOf(a, b),
			Lost: []loss{{a, 19_999 * time.Millisecond, false}, {c, 0, true}}}},
		"confirm-owner":    confirmOwner{head: at(3), Nonce: 77, Entries: list},
		"confirm-member":   confirmOwner{head: head{Birth: testBirth}, Nonce: 77, Entries: []held{}},
		"owner-confirmed":  ownerConfirmed{head: at(3), Nonce: 77, Firm: true, Last: 29, Lost: list[1:2]},
		"member-confirmed": ownerConfirmed{head: head{Birth: testBirth}, Nonce: 77, Lost: []held{}},
		"leave-notice-ack": leaveNotice{Kind: wire.KindLeaveNoticeAck, Birth: testBirth},
	}
	for _, k := range []wire.Kind{wire.KindRegisterAck, wire.KindDrainRegion, wire.KindDrainDone} {
		m[k.String()] = signal{k, at(3)}
	}
	m["report-moves"] = register{head: at(3), Settings: orders, Hosts: true, Knows: true, Report: true, Floor: 9, Mask: 1,
		Owned: list, Stopping: []route.ShardID{1, 29}, Kept: []held{{7, fence(2, 5)}}}
	m["report-gave"] = register{head: at(3), Settings: orders, Knows: true, Report: true, Floor: 9, Mask: 1,
		Owned: []held{}, Holders: peer.SetOf(a, b), Gave: []home{{list[0], 1}, {list[2], 0}}}
	m["host-kept"] = hostKept{at(3), []resumed{{held{0, fence(3, 9)}, fence(3, 2)},
		{held{29, fence(3, 300)}, fence(2, 7)}}}
	m["register-not-ready"] = register{head: at(3), Settings: orders, Hosts: true, Knows: true, NotReady: true}
	m["register-shard-by"] = register{head: at(3), Settings: byCustomer, Hosts: true, Knows: true}
	m["report-wanted-shard-by"] = reportWanted{head: at(3), Settings: byCustomer, Floor: 9}
	m["nak-shard-by"] = nak{head: at(3), Reason: nakSettings, Have: orders, Got: byCustomer}
	m["move-wanted"] = moveWanted{head: at(3), Nonce: 77, Shard: 29, To: b}
	m["shard-loads"] = shardLoads{at(3), 10_000, true, false, []loads.Shard{{Shard: 0, Load: strategy.Load{Rate: 300}},
		{Shard: 29, Load: strategy.Load{Entities: 1, HandlerTime: 1<<32 - 1}}}, false, strategy.NodeLoad{}}
	m["shard-loads-strains"] = shardLoads{at(3), 10_000, true, true, []loads.Shard{
		{Shard: 0, Load: strategy.Load{Rate: 300, Queued: 70_000}}, {Shard: 29, Load: strategy.Load{Entities: 1}}},
		true, strategy.NodeLoad{Processor: 950, Memory: 7}}
	m["shard-loads-none"] = shardLoads{at(3), 1, true, true, []loads.Shard{}, false, strategy.NodeLoad{}}
	m["move-answer"] = moveAnswer{head: at(3), Nonce: 77}
	m["move-answer-no"] = moveAnswer{head: at(3), Nonce: 77, Code: 3, Detail: ": shard 29"}
	m["homes-since"] = homes{head: at(3), Since: 300, Peers: peer.SetOf(a), Entries: []home{{list[0], 0}}}
	m["move-shard"] = moveShard{head: at(3), held: list[1], Seq: 300, Target: c, Told: peer.SetOf(a, b)}
	m["transfer"] = transfer{head: at(3), held: list[1], Seq: 300, Total: 70_000, At: 69_997, Bytes: []byte("abc")}
	m["transfer-states"] = transfer{head: at(3), held: list[1], States: true, Seq: 300, Total: 3, Bytes: []byte("abc")}
	m["transfer-ack"] = transferAck{head: at(3), held: list[1], Seq: 300, Have: 65_536}
	m["move-cost"] = moveCost{head: at(3), held: list[1], Seq: 300, Bytes: 70_000, Took: 1500}
	m["transfer-refused"] = transferAck{head: at(3), held: list[1], Seq: 300, Refused: true}
	for _, k := range []wire.Kind{wire.KindMoveShards, wire.KindMoveAborted, wire.KindShardsMoved} {
		m[k.String()] = placement{k, at(3), peer.SetOf(a, b), []placed{{home: home{list[0], 1}, Seq: 7},
			{home: home{list[2], 0}, Seq: 300}}}
	}
	m["move-shards"] = placement{wire.KindMoveShards, at(3), peer.SetOf(a, b),
		[]placed{{home: home{list[0], 1}, Seq: 7}, {home: home{list[2], 0}, Seq: 300, To: 1}}}
	for _, k := range []wire.Kind{wire.KindHostShards, wire.KindShardsStarted, wire.KindStopShards, wire.KindShardsStopped,
		wire.KindHomesGone, wire.KindHomesGoneAck} {
		m[k.String()] = ownership{k, at(3), list}
	}
	return m
}

// losses lists n losses of one age.
func losses(n int, age time.Duration) []loss {
	list := make([]loss, n)
	for i := range list {
		list[i] = loss{ID: peer.ID{Addr: peer.MustAddr("10.2.0.1:1"), Inc: uint64(i + 1)}, Age: age}
	}
	return list
}

func TestCodecRoundTripAndTruncation(t *testing.T) {
	kinds := map[wire.Kind]bool{}
	for name, l := range samples() {
		kinds[l.kind()] = true
		body := l.append(nil)
		got, err := readMessage(l.kind(), body)
		require.NoError(t, err, name)
		require.Equal(t, l, got, name)
		for n := range body {
			_, err := readMessage(l.kind(), body[:n])
			var we *wire.Error
			require.ErrorAs(t, err, &we, "%s cut at %d", name, n)
		}
		_, err = readMessage(l.kind(), append(body, 0))
		require.ErrorIs(t, err, wire.ErrTrailing, name)
	}
	for k := range 256 {
		if k := wire.Kind(k); k.Owner() == wire.OwnerShard {
			require.True(t, kinds[k], "no sample of %s", k)
		}
	}
}

func TestCodecGolden(t *testing.T) {
	for name, l := range samples() {
		path := filepath.Join("testdata", "golden", name+".hex")
		got := hex.EncodeToString(l.append(nil)) + "\n"
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), got, name)
	}
}

// A build that knows of no shard functions reads one as a role that no member has: so it refuses the type as one of
// another role. Names that this cannot carry are refused.
func TestShardFunctionOnTheWire(t *testing.T) {
	b := appendSettings(nil, Settings{Name: "order", Shards: 30, Role: "store", ShardBy: "customer"})
	r := wire.NewReader(wire.KindRegister, b)
	require.Equal(t, "order", r.String(route.MaxTypeName))
	require.EqualValues(t, 30, readU32(&r))
	require.Equal(t, "store\x00customer", r.String(MaxRole))
	require.NoError(t, r.Done())
	for _, role := range []string{"store\x00", "\x00", "store\x00a\x00b"} {
		b := wire.AppendString(wire.AppendUvarint(wire.AppendString(nil, "order"), 30), role)
		r := wire.NewReader(wire.KindRegister, b)
		readSettings(&r, orders.ID())
		require.ErrorIs(t, r.Err(), wire.ErrBadValue, "%q", role)
	}
	long := strings.Repeat("r", 200)
	for _, s := range []Settings{{Name: "order", Shards: 1, Role: "a\x00b"}, {Name: "order", Shards: 1, ShardBy: "a\x00b"},
		{Name: "order", Shards: 1, Role: long, ShardBy: long[:55]}} {
		require.ErrorIs(t, s.Validate(), ErrBadSettings, "%q", s)
	}
	require.NoError(t, Settings{Name: "order", Shards: 1, Role: long, ShardBy: long[:54]}.Validate())
}

// byCustomer is orders with a shard function.
var byCustomer = Settings{Name: orders.Name, Shards: orders.Shards, ShardBy: "customer"}

func TestCodecRefusesBadValues(t *testing.T) {
	zero := func(h head, f func(*head)) head { f(&h); return h }
	for name, c := range map[string]struct {
		l    message
		want error
	}{
		"question without a nonce": {confirmOwner{head: at(1), Entries: []held{{1, fence(1, 1)}}}, wire.ErrBadValue},
		"question without shards":  {confirmOwner{head: at(1), Nonce: 1}, wire.ErrBadValue},
		"shards without a type":    {confirmOwner{head{Birth: 1}, 1, []held{{1, fence(1, 1)}}}, wire.ErrBadValue},
		"a type without a term":    {confirmOwner{head: head{Birth: 1, Type: 9}, Nonce: 1}, wire.ErrBadValue},
		"question without a birth": {confirmOwner{Nonce: 1}, wire.ErrBadValue},
		"answer without a nonce":   {ownerConfirmed{head: at(1)}, wire.ErrBadValue},
		"lost of no type":          {ownerConfirmed{head: head{Birth: 1}, Nonce: 1, Last: 3}, wire.ErrBadValue},
		"lost that was not asked": {ownerConfirmed{head: at(1), Nonce: 1, First: 2, Last: 3,
			Lost: []held{{4, fence(1, 1)}}}, wire.ErrBadValue},
		"no birth":            {signal{wire.KindDrainDone, zero(at(1), func(h *head) { h.Birth = 0 })}, wire.ErrBadValue},
		"no term":             {signal{wire.KindDrainDone, at(0)}, wire.ErrBadValue},
		"fence without epoch": {one(wire.KindHostShards, 1, 1, fence(1, 0)), wire.ErrBadValue},
		"shard too high":      {one(wire.KindHostShards, 1, route.MaxShards, fence(1, 1)), wire.ErrBadValue},
		"falling shards": {ownership{wire.KindHostShards, at(1), []held{{5, fence(1, 1)}, {5, fence(1, 1)}}},
			wire.ErrBadValue},
		"kept of its own fence": {hostKept{at(3), []resumed{{held{1, fence(3, 2)}, fence(3, 2)}}},
			wire.ErrBadValue},
		"given to nobody": {register{head: at(1), Settings: orders, Report: true, Floor: 1, Mask: 1,
			Kept:    []held{{1, fence(1, 1)}},
			Holders: peer.SetOf(peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: 1})}, wire.ErrBadValue},
		"given beyond mask": {register{head: at(1), Settings: orders, Report: true, Floor: 1, Mask: 2,
			Holders: peer.SetOf(peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: 1}),
			Gave:    []home{{held{1, fence(1, 1)}, 0}}}, wire.ErrBadValue},
		"too many":            {ask{at(1), all(Settings{Shards: maxEntries + 1})}, wire.ErrTooLarge},
		"home without a peer": {homes{head: at(1), Entries: []home{{held{1, fence(1, 1)}, 0}}}, wire.ErrBadValue},
		"peers out of order": {homes{head: at(1), Peers: peer.Set{{Addr: peer.MustAddr("10.0.0.2:1"), Inc: 1},
			{Addr: peer.MustAddr("10.0.0.1:1"), Inc: 1}}}, wire.ErrBadOrder},
		"other type's name":  {register{head: at(1), Settings: Settings{Name: "x", Shards: 1}}, wire.ErrBadValue},
		"no shards":          {register{head: at(1), Settings: Settings{Name: orders.Name}}, wire.ErrBadValue},
		"report of no floor": {register{head: at(1), Settings: orders, Report: true}, wire.ErrBadValue},
		"owned beyond count": {register{head: at(1), Settings: orders, Report: true, Floor: 1, Mask: 1,
			Owned: []held{{30, fence(1, 1)}}}, wire.ErrBadValue},
		"owned beyond mask": {register{head: at(1), Settings: orders, Report: true, Floor: 1, Mask: 2,
			Owned: []held{{3, fence(1, 1)}}}, wire.ErrBadValue},
		"not ready and no host": {register{head: at(1), Settings: orders, Knows: true, NotReady: true}, wire.ErrBadValue},
		"move without a nonce":  {moveWanted{head: at(1), Shard: 1, To: losses(1, 0)[0].ID}, wire.ErrBadValue},
		"move to nobody":        {moveWanted{head: at(1), Nonce: 1, Shard: 1}, wire.ErrBadValue},
		"answer without nonce":  {moveAnswer{head: at(1), Code: 1}, wire.ErrBadValue},
		"answer of no error":    {moveAnswer{head: at(1), Nonce: 1, Code: uint8(len(moveErrors))}, wire.ErrBadValue},
		"reason of a success":   {moveAnswer{head: at(1), Nonce: 1, Detail: "why"}, wire.ErrBadValue},
		"nak of nothing":        {nak{head: at(1), Reason: nakSettings, Have: orders, Got: orders}, wire.ErrBadValue},
		"nak of no one":         {nak{head: at(1), Reason: nakTerm}, wire.ErrBadValue},
		"question of zero":      {reportWanted{head: at(1), Settings: orders}, wire.ErrBadValue},
		"leave notice of none":  {leaveNotice{Kind: wire.KindLeaveNotice}, wire.ErrBadValue},
		"leave notice with losses out of order": {leaveNotice{wire.KindLeaveNotice, testBirth,
			recentlyLost{Lost: append(losses(1, 0), losses(1, 0)...)}}, wire.ErrBadOrder},
		"leave notice with an age beyond all": {leaveNotice{wire.KindLeaveNotice, testBirth,
			recentlyLost{Lost: losses(1, 1<<62)}}, wire.ErrBadValue},
		"leave notice with too long a list": {leaveNotice{wire.KindLeaveNotice, testBirth,
			recentlyLost{Lost: losses(maxTold+1, 0)}}, wire.ErrTooLarge},
		"leave notice with too much in two lists": {leaveNotice{wire.KindLeaveNotice, testBirth,
			recentlyLost{Lost: losses(maxTold, 0),
				Roll: peer.SetOf(losses(1, 0)[0].ID)}}, wire.ErrTooLarge},
	} {
		_, err := readMessage(c.l.kind(), c.l.append(nil))
		require.ErrorIs(t, err, c.want, name)
	}
	_, err := readMessage(wire.KindGossip, nil)
	require.ErrorIs(t, err, wire.ErrBadKind)
	_, err = readMessage(wire.KindRegister, append(at(1).append(nil), 0xff))
	require.ErrorIs(t, err, wire.ErrBadValue)
}

// A count that the body cannot hold allocates nothing.
func TestCodecAllocationIsBounded(t *testing.T) {
	for _, k := range []wire.Kind{wire.KindHostShards, wire.KindAskHomes, wire.KindHomes} {
		body := wire.AppendUvarint(at(1).append(nil), maxEntries)
		require.Less(t, testing.AllocsPerRun(20, func() { _, _ = readMessage(k, body) }), 8.0)
		_, err := readMessage(k, body)
		require.ErrorIs(t, err, wire.ErrTruncated)
	}
	big := ownership{wire.KindHostShards, at(1), make([]held, maxEntries)}
	for i := range big.Entries {
		big.Entries[i] = held{route.ShardID(i * 60), fence(1<<32-1, 1<<32-1)}
	}
	require.Less(t, len(big.append(nil)), wire.MaxControlFrame/8)

	body := wire.AppendUvarint(wire.AppendBool(wire.AppendU64(nil, testBirth), true), maxTold)
	require.Less(t, testing.AllocsPerRun(20, func() { _, _ = readMessage(wire.KindLeaveNotice, body) }), 8.0)
	_, err := readMessage(wire.KindLeaveNotice, body)
	require.ErrorIs(t, err, wire.ErrTruncated)
	most := leaveNotice{wire.KindLeaveNotice, testBirth,
		recentlyLost{Complete: true, Lost: losses(maxTold, DefaultTakeoverTime)}}
	require.Less(t, len(most.append(nil)), 1<<13)
}

func FuzzLetter(f *testing.F) {
	for _, l := range samples() {
		f.Add(uint8(l.kind()), l.append(nil))
	}
	f.Fuzz(func(t *testing.T, k uint8, body []byte) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(body)) }()
		l, err := readMessage(wire.Kind(k), body)
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "wire: "))
			return
		}
		again, err := readMessage(l.kind(), l.append(nil))
		require.NoError(t, err)
		require.Equal(t, l, again)
	})
}

// Whatever arrives, and from whomever, a machine neither fails nor hosts without an order it promised to take.
func FuzzHandle(f *testing.F) {
	for _, l := range samples() {
		f.Add(uint8(l.kind()), l.append(nil), true)
		f.Add(uint8(l.kind()), l.append(nil), false)
	}
	f.Fuzz(func(t *testing.T, k uint8, body []byte, registered bool) {
		w := startWorld(t, 3)
		n := w.nodes[2]
		if registered {
			n.do(RegisterCommand{Settings: orders})
		}
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(body)) }()
		_ = n.m.Handle(w.now, w.now, w.nodes[0].id, wire.Kind(k), body)
		n.collect()
		require.Empty(t, n.hosted)
	})
}
