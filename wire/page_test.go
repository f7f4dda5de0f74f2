// The page docs/contributing/wire.md under test: its bytes are what the codec writes, its table of kinds is the table
// of kinds.

package wire_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

const golden = 0x0102030405060708 // correlation and incarnation on the page

// written is what the codec writes for every golden block of the page.
func written() map[string][]byte {
	frame := func(k wire.Kind, body []byte) []byte { return wire.AppendFrame(nil, k, 0, 0, body) }
	reply := func(status route.Reason, payload string) []byte {
		b := make([]byte, wire.ReplySize+len(payload))
		wire.PutReply(b, uint16(status), golden, []byte(payload))
		return b
	}
	id := func(addr string) []byte { return peer.AppendID(nil, peer.ID{Addr: peer.MustAddr(addr), Inc: golden}) }
	kind, shard := uint32(route.TypeOf("a")), uint32(route.ShardOf("a", 10))
	heartbeat := wire.AppendHeartbeat(nil, wire.Heartbeat{Seq: 9, Sent: 1e9})
	ack, _ := wire.AnswerHeartbeat(nil, heartbeat, 1e6)
	cancel := make([]byte, wire.CancelSize)
	wire.PutCancel(cancel, golden)
	fence := route.MakeFence(0x0192a4b1c0000007, 3, 7)
	return map[string][]byte{
		"envelope": wire.AppendEnvelope(nil, &wire.Envelope{Flags: wire.FlagAsk, Type: kind, Shard: shard, Term: 3,
			Epoch: 7, Corr: golden, ID: []byte("a"), Payload: []byte("hi")}),
		"envelope-more": wire.AppendEnvelope(nil, &wire.Envelope{Flags: wire.FlagAsk | wire.FlagLimit | wire.FlagHeaders,
			Type: kind, Shard: shard, Term: 3, Epoch: 7, Corr: golden, ID: []byte("a"), Payload: []byte("hi"), Limit: 1500,
			Headers: []byte("t=1")}),
		"reply":         reply(route.OK, "ok"),
		"reply-refused": reply(route.NotOwner, ""),
		"marker": frame(wire.KindMarker, wire.AppendMarker(nil, wire.Marker{Type: kind, Shard: shard, Term: 3,
			Seq: 2})),
		"cancel": cancel,
		"parcel": wire.AppendParcel(nil, &wire.Parcel{Service: golden, First: true, Last: true, Piece: []byte("hi")}),
		"credit": frame(wire.KindCredit, wire.AppendCredit(nil, wire.Credit{Lane: 1, Generation: 2,
			Consumed: 256 << 10})),
		"mailbox-full": frame(wire.KindFull, wire.AppendFull(nil, wire.Full{Type: kind, Shard: shard, Hash: golden,
			Reason: uint16(route.MailboxFull)}, 256<<10)),
		"has-room": frame(wire.KindRoom, wire.AppendRoom(nil, wire.Full{Reason: uint16(route.BudgetFull)})),
		"bulk-begin": frame(wire.KindBulkBegin, wire.AppendBulkBegin(nil, &wire.BulkBegin{Number: 1, Size: 64 << 20,
			Type: kind, Shard: shard, Term: 3, Epoch: 7, Corr: golden})),
		"bulk-grant": frame(wire.KindBulkGrant, wire.AppendBulkGrant(nil, wire.BulkGrant{Number: 1, Allowed: 1 << 20})),
		"bulk-chunk": wire.AppendBulkChunk(nil, 1, []byte("hi")),
		"bulk-whole": frame(wire.KindBulkWhole, wire.AppendBulkNumber(nil, 1)),
		"bulk-over": frame(wire.KindBulkOver, wire.AppendBulkOver(nil, wire.BulkOver{Number: 1,
			Status: uint16(route.TooLarge), Limit: 1 << 20})),
		"bulk-abort": frame(wire.KindBulkAbort, wire.AppendBulkNumber(nil, 1)),
		"bulk-envelope": wire.AppendEnvelope(nil, &wire.Envelope{Flags: wire.FlagParked | wire.FlagBulk, Type: kind,
			Shard: shard, Term: 3, Epoch: 7, ID: []byte("a"),
			Payload: wire.AppendBulkRef(nil, wire.BulkRef{Generation: 2, Number: 1})}),
		"heartbeat":     frame(wire.KindHeartbeat, heartbeat),
		"heartbeat-ack": frame(wire.KindHeartbeatAck, ack),
		"identity-v4":   id("127.0.0.1:7355"),
		"identity-v6":   id("[fe80::1%eth0]:80"),
		"identity-name": id("node-1:443"),
		"fence":         fence[:],
	}
}

// TestPageBytes holds that the page shows every sample, and exactly as the codec writes it.
func TestPageBytes(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "contributing", "wire.md"))
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```golden ([a-z0-9-]+)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	want := written()
	shown := map[string]bool{}
	for _, block := range blocks {
		name := block[1]
		require.Contains(t, want, name, "a block that no codec writes")
		require.False(t, shown[name], "%s is shown twice", name)
		shown[name] = true
		var b []byte
		for line := range strings.Lines(block[2]) {
			digits, _, _ := strings.Cut(line, ";")
			part, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
			require.NoError(t, err, name)
			b = append(b, part...)
		}
		require.Equal(t, hex.EncodeToString(want[name]), hex.EncodeToString(b), name)
	}
	require.Len(t, shown, len(want), "the page misses a sample")
}

// TestPageKinds holds that the page lists every kind with its number in the range of its room, and no other.
func TestPageKinds(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "contributing", "wire.md"))
	require.NoError(t, err)
	var listed, known []string
	_, table, _ := strings.Cut(string(page), "\n| range | meaning | kinds |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	kinds := "" // a row that is too long goes on in the next one
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimRight(row, " |\n"), "|")
		kinds += cells[len(cells)-1]
	}
	for _, kind := range regexp.MustCompile(`\d+ +[a-z]+(?:-[a-z]+)*`).FindAllString(kinds, -1) {
		listed = append(listed, strings.Join(strings.Fields(kind), " "))
	}
	for n := range 256 {
		if k := wire.Kind(n); k.Known() {
			known = append(known, fmt.Sprintf("%d %s", n, k))
		}
	}
	require.Equal(t, known, listed)
}

// TestPageReasons holds that the page lists every delivery reason by number and name.
func TestPageReasons(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "contributing", "wire.md"))
	require.NoError(t, err)
	_, list, _ := strings.Cut(string(page), "\nThe delivery reasons: ")
	list, _, _ = strings.Cut(list, ". ")
	var want []string
	for r := route.Reason(1); r.Known(); r++ {
		want = append(want, fmt.Sprintf("%d %s", r, r))
	}
	require.Equal(t, strings.Join(want, ", "), strings.Join(strings.Fields(list), " "))
}
