// Tests of the frames: golden bytes, truncation, bad values, what a decoder may allocate.

package courier

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/wire"
)

// samples are segments of which the page docs/contributing/control-messages.md shows the first.
func samples() []Segment {
	return []Segment{
		{From: 0x0102030405060708, To: 0x1112131415161718, Seq: 7, Ack: 4, Kind: wire.KindDrainDone, Body: []byte("ab")},
		{From: 102, To: 101, Seq: 1, Detour: true, Kind: wire.KindLeaveNotice, Body: []byte{}},
		{From: 102, To: 101, Seq: 2, Ack: 3, Kind: wire.KindRegister, Body: []byte{1, 2, 3}},
	}
}

func acks() []segmentAck {
	return []segmentAck{
		{from: 0x0102030405060708, to: 0x1112131415161718, ack: 4, gap: true},
		{from: 102, to: 101, ack: 3, detour: true},
		{from: 102, to: 101},
	}
}

func TestGoldenBytes(t *testing.T) {
	const pair = "0807060504030201" + "1817161514131211"
	p, c := samples()[0], acks()[0]
	require.Equal(t, pair+"0700000000000000"+"0400000000000000"+"00"+"4d"+"6162",
		hex.EncodeToString(AppendSegment(nil, &p)))
	require.Equal(t, pair+"0400000000000000"+"02", hex.EncodeToString(c.append(nil)))
	require.Equal(t, segmentHead+2, len(AppendSegment(nil, &p)))
	require.Equal(t, ackSize, len(c.append(nil)))
	require.Equal(t, ackSize, wire.KindSegmentAck.MaxBody())
}

// The page docs/contributing/control-messages.md shows the first sample of each frame, byte by byte.
func TestPageBytes(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "contributing", "control-messages.md"))
	require.NoError(t, err)
	p, c := samples()[0], acks()[0]
	want := map[string][]byte{"segment": AppendSegment(nil, &p), "segment-ack": c.append(nil)}
	blocks := regexp.MustCompile("(?s)```golden ([a-z-]+)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, len(want))
	for _, block := range blocks {
		var digits string
		for line := range strings.Lines(block[2]) {
			bytes, _, _ := strings.Cut(line, ";")
			digits += strings.Join(strings.Fields(bytes), "")
		}
		require.Equal(t, hex.EncodeToString(want[block[1]]), digits, block[1])
	}
}

func TestRoundTripAndTruncation(t *testing.T) {
	for _, p := range samples() {
		b := AppendSegment(nil, &p)
		got, err := ParseSegment(b)
		require.NoError(t, err)
		require.Equal(t, p, got)
		for n := range segmentHead {
			_, err := ParseSegment(b[:n])
			var we *wire.Error
			require.ErrorAs(t, err, &we, "cut at %d", n)
		}
	}
	for _, c := range acks() {
		b := c.append(nil)
		got, err := parseAck(b)
		require.NoError(t, err)
		require.Equal(t, c, got)
		for n := range b {
			_, err := parseAck(b[:n])
			require.ErrorIs(t, err, wire.ErrTruncated, "cut at %d", n)
		}
		_, err = parseAck(append(b, 0))
		require.ErrorIs(t, err, wire.ErrTrailing)
	}
}

func TestBadValues(t *testing.T) {
	for name, change := range map[string]func(p *Segment){
		"no sender":              func(p *Segment) { p.From = 0 },
		"nobody meant":           func(p *Segment) { p.To = 0 },
		"no number":              func(p *Segment) { p.Seq = 0 },
		"a kind of gossip":       func(p *Segment) { p.Kind = wire.KindGossip },
		"a heartbeat":            func(p *Segment) { p.Kind = wire.KindHeartbeat },
		"a question of now":      func(p *Segment) { p.Kind = wire.KindConfirmOwner },
		"a segment in a segment": func(p *Segment) { p.Kind = wire.KindSegment },
		"no kind at all":         func(p *Segment) { p.Kind = 250 },
	} {
		p := samples()[0]
		change(&p)
		_, err := ParseSegment(AppendSegment(nil, &p))
		require.ErrorIs(t, err, wire.ErrBadValue, name)
	}
	p, c := samples()[0], acks()[0]
	b := AppendSegment(nil, &p)
	b[32] = flagGap
	_, err := ParseSegment(b)
	require.ErrorIs(t, err, wire.ErrBadValue)
	b = c.append(nil)
	b[24] = 4
	_, err = parseAck(b)
	require.ErrorIs(t, err, wire.ErrBadValue)
	c.to = 0
	_, err = parseAck(c.append(nil))
	require.ErrorIs(t, err, wire.ErrBadValue)
}

// Everything of sharding is carried but the question of a suspended node and its answer, watches, notices, and what an
// order rests on; nothing else is.
func TestCarries(t *testing.T) {
	for n := range 256 {
		k := wire.Kind(n)
		want := k.Owner() == wire.OwnerShard && k != wire.KindConfirmOwner && k != wire.KindConfirmAck ||
			k == wire.KindRefusals || k == wire.KindTaken || k == wire.KindWatches || k == wire.KindTenure
		require.Equal(t, want, Carries(k), k)
	}
	require.True(t, Carries(wire.KindHostShards))
	require.True(t, Carries(wire.KindLeaveNotice))
}

// Decoding allocates nothing: bodies are views.
func TestDecodingAllocatesNothing(t *testing.T) {
	p := Segment{From: 1, To: 2, Seq: 3, Kind: wire.KindHomes, Body: make([]byte, 1<<20)}
	b, c := AppendSegment(nil, &p), acks()[0]
	r := c.append(nil)
	require.Zero(t, testing.AllocsPerRun(20, func() {
		if _, err := ParseSegment(b); err != nil {
			panic(err)
		}
		if _, err := parseAck(r); err != nil {
			panic(err)
		}
	}))
}

func FuzzSegment(f *testing.F) {
	for _, p := range samples() {
		f.Add(AppendSegment(nil, &p))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := ParseSegment(b); err == nil {
			require.Equal(t, b, AppendSegment(nil, &p))
		}
	})
}

func FuzzSegmentAck(f *testing.F) {
	for _, c := range acks() {
		f.Add(c.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := parseAck(b); err == nil {
			require.Equal(t, b, c.append(nil))
		}
	})
}
