// Tests of the data plane's frames and of heartbeats: round trips, truncation at every byte, refusals, no allocation.

package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func put(e *Envelope, id string) []byte {
	b := make([]byte, SizeEnvelope(len(id), len(e.Payload))+e.More())
	PutEnvelope(b, e, id)
	return b
}

func putReply(status uint16, corr uint64, payload []byte) []byte {
	b := make([]byte, ReplySize+len(payload))
	PutReply(b, status, corr, payload)
	return b
}

// TestEnvelopeRoundTrip is the law of the envelope: both encoders agree, it splits whole, it reads back (CARD-4).
func TestEnvelopeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SliceOfN(rapid.Byte(), 1, MaxIDSize).Draw(t, "id")
		want := Envelope{
			Flags: uint8(rapid.IntRange(0, int(flagsKnown)).Draw(t, "flags")),
			Type:  rapid.Uint32().Draw(t, "type"), Shard: rapid.Uint32().Draw(t, "shard"),
			Term: rapid.Uint32().Draw(t, "term"), Epoch: rapid.Uint32().Draw(t, "epoch"),
			Corr: rapid.Uint64().Draw(t, "corr"), ID: id,
			Payload: rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "payload"),
			Limit:   rapid.Uint32().Draw(t, "limit"), Headers: rapid.SliceOfN(rapid.Byte(), 0, 99).Draw(t, "headers"),
		}
		want.Flags &= flagsKnown
		b := put(&want, string(id))
		require.Equal(t, b, AppendEnvelope([]byte("x"), &want)[1:])
		frame, n, err := Split(append(b, 1, 2, 3), LaneData, DefaultMaxFrame)
		require.NoError(t, err)
		require.Equal(t, len(b), n)
		var got Envelope
		require.NoError(t, ParseEnvelope(frame, &got))
		require.True(t, bytes.Equal(want.Payload, got.Payload))
		if want.Flags&FlagLimit == 0 {
			want.Limit = 0
		}
		if want.Flags&FlagHeaders == 0 {
			want.Headers = nil
		}
		require.True(t, bytes.Equal(want.Headers, got.Headers))
		got.Payload, got.Headers = want.Payload, want.Headers
		require.Equal(t, want, got)
	})
}

// TestEnvelopeTruncatedAtEveryByte cuts inside the header and the id: an error, and the target unchanged. A shorter
// payload cannot be distinguished from a whole one: the frame's size says where it ends.
func TestEnvelopeTruncatedAtEveryByte(t *testing.T) {
	whole := put(&Envelope{Type: 1, Shard: 2, Payload: []byte("pay")}, "entity")
	for cut := range EnvelopeSize + len("entity") {
		e := Envelope{Shard: 77}
		err := ParseEnvelope(whole[:cut:cut], &e)
		require.Equal(t, &Error{KindEnvelope, cut, ErrTruncated}, err)
		require.Equal(t, Envelope{Shard: 77}, e)
	}
	more := put(&Envelope{Flags: FlagAsk | FlagLimit | FlagHeaders, Headers: []byte("trace"), Limit: 9}, "entity")
	require.Len(t, more, EnvelopeSize+len("entity")+4+2+len("trace"))
	for cut := range more {
		e := Envelope{Shard: 77}
		err := ParseEnvelope(more[:cut:cut], &e)
		require.Equal(t, &Error{KindEnvelope, cut, ErrTruncated}, err)
		require.Equal(t, Envelope{Shard: 77}, e)
	}
}

// Headers have a bound, and neither they nor the id reach into what is behind them.
func TestEnvelopeBoundsHeaders(t *testing.T) {
	var e Envelope
	most := put(&Envelope{Flags: FlagHeaders, Headers: make([]byte, MaxHeaders), Payload: []byte("pay")}, "e")
	require.NoError(t, ParseEnvelope(most, &e))
	require.Len(t, e.Headers, MaxHeaders)
	require.Equal(t, MaxHeaders, cap(e.Headers))
	require.Equal(t, "pay", string(e.Payload))
	over := put(&Envelope{Flags: FlagHeaders, Headers: make([]byte, MaxHeaders+1)}, "e")
	require.Equal(t, &Error{KindEnvelope, EnvelopeSize + 1, ErrTooLarge}, ParseEnvelope(over, &Envelope{}))
}

// TestEnvelopeRefuses holds the bounds of the id and the flags.
func TestEnvelopeRefuses(t *testing.T) {
	change := func(at int, v byte) []byte {
		b := put(&Envelope{Payload: make([]byte, 2000)}, "entity")
		b[at] = v
		return b
	}
	var e Envelope
	require.Equal(t, &Error{KindEnvelope, 6, ErrTooSmall}, ParseEnvelope(change(6, 0), &e))
	require.Equal(t, &Error{KindEnvelope, 6, ErrTooLarge}, ParseEnvelope(change(7, 5), &e))
	require.Equal(t, &Error{KindEnvelope, 5, ErrBadValue}, ParseEnvelope(change(5, 1<<7), &e))
	require.Equal(t, &Error{KindEnvelope, 5, ErrBadValue}, ParseEnvelope(change(5, 1<<6), &e))
	require.Zero(t, e)
	longest := strings.Repeat("x", MaxIDSize)
	require.NoError(t, ParseEnvelope(put(&Envelope{}, longest), &e))
	require.Equal(t, longest, string(e.ID))
	require.Empty(t, e.Payload)
	require.Equal(t, MaxIDSize, cap(e.ID), "the id must not reach into the payload")
}

// TestReplyRoundTripAndTruncation holds the reply frame.
func TestReplyRoundTripAndTruncation(t *testing.T) {
	whole := putReply(0x1234, 0x1122334455667788, []byte("answer"))
	status, corr, payload, err := ParseReply(whole)
	require.NoError(t, err)
	require.Equal(t, []any{uint16(0x1234), uint64(0x1122334455667788), "answer"}, []any{status, corr, string(payload)})
	for cut := range ReplySize {
		_, _, _, err = ParseReply(whole[:cut:cut])
		require.Equal(t, &Error{KindReply, cut, ErrTruncated}, err)
	}
	_, _, payload, err = ParseReply(whole[:ReplySize])
	require.NoError(t, err)
	require.Empty(t, payload)
	whole[5] = 1
	_, _, _, err = ParseReply(whole)
	require.Equal(t, &Error{KindReply, 5, ErrBadValue}, err)
}

// cancelBody is the body of a cancel frame.
func cancelBody(corr uint64) []byte {
	b := make([]byte, CancelSize)
	PutCancel(b, corr)
	return Body(b)
}

// fixed is every body of fixed size: a sample, its bytes, and how it reads.
var fixed = []struct {
	kind  Kind
	body  []byte
	parse func([]byte) (any, error)
	want  any
}{
	{KindCredit, AppendCredit(nil, Credit{1, 2, 1 << 40}), func(b []byte) (any, error) { return ParseCredit(b) },
		Credit{1, 2, 1 << 40}},
	{KindMarker, AppendMarker(nil, Marker{1, 2, 3, 4}), func(b []byte) (any, error) { return ParseMarker(b) },
		Marker{1, 2, 3, 4}},
	{KindHeartbeat, AppendHeartbeat(nil, Heartbeat{5, 6}), func(b []byte) (any, error) { return ParseHeartbeat(b) },
		Heartbeat{5, 6}},
	{KindHeartbeatAck, AppendHeartbeatAck(nil, HeartbeatAck{5, 6, 7}),
		func(b []byte) (any, error) { return ParseHeartbeatAck(b) }, HeartbeatAck{5, 6, 7}},
	{KindBulkBegin, AppendBulkBegin(nil, &BulkBegin{1, 2, 3, 4, 5, 6, 7, true}),
		func(b []byte) (any, error) { return ParseBulkBegin(b) }, BulkBegin{1, 2, 3, 4, 5, 6, 7, true}},
	{KindBulkGrant, AppendBulkGrant(nil, BulkGrant{1, 2}), func(b []byte) (any, error) { return ParseBulkGrant(b) },
		BulkGrant{1, 2}},
	{KindBulkOver, AppendBulkOver(nil, BulkOver{1, 2, 3}), func(b []byte) (any, error) { return ParseBulkOver(b) },
		BulkOver{1, 2, 3}},
	{KindBulkWhole, AppendBulkNumber(nil, 9), func(b []byte) (any, error) { return ParseBulkNumber(KindBulkWhole, b) },
		uint32(9)},
	{KindBulkAbort, AppendBulkNumber(nil, 9), func(b []byte) (any, error) { return ParseBulkNumber(KindBulkAbort, b) },
		uint32(9)},
	{KindFull, AppendFull(nil, Full{1, 2, 3, 4}, 5), func(b []byte) (any, error) {
		f, limit, err := ParseFull(b)
		return [2]any{f, limit}, err
	}, [2]any{Full{1, 2, 3, 4}, uint64(5)}},
	{KindRoom, AppendRoom(nil, Full{1, 2, 3, 4}), func(b []byte) (any, error) { return ParseRoom(b) }, Full{1, 2, 3, 4}},
	{KindCancel, cancelBody(9), func(b []byte) (any, error) { return ParseCancel(b) }, uint64(9)},
}

// TestFixedBodies reads each back, cuts it at every byte and appends one byte too many.
func TestFixedBodies(t *testing.T) {
	for _, c := range fixed {
		got, err := c.parse(c.body)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		for cut := range c.body {
			_, err = c.parse(c.body[:cut:cut])
			require.ErrorIs(t, err, ErrTruncated, "%s cut at %d", c.kind, cut)
		}
		_, err = c.parse(append(bytes.Clone(c.body), 0))
		require.Equal(t, &Error{c.kind, len(c.body), ErrTrailing}, err)
	}
}

// TestAnswerHeartbeat holds that the answer echoes the probe and adds the age of the last step (FD-1).
func TestAnswerHeartbeat(t *testing.T) {
	probe := AppendHeartbeat(nil, Heartbeat{Seq: 9, Sent: 1234})
	answer, err := AnswerHeartbeat([]byte("x"), probe, 55)
	require.NoError(t, err)
	ack, err := ParseHeartbeatAck(answer[1:])
	require.NoError(t, err)
	require.Equal(t, HeartbeatAck{Seq: 9, Sent: 1234, StepAge: 55}, ack)
	untouched, err := AnswerHeartbeat([]byte("x"), probe[:15], 55)
	require.ErrorIs(t, err, ErrTruncated)
	require.Equal(t, []byte("x"), untouched)
}

// TestHotFramesDoNotAllocate holds zero allocations for everything that a message or an ask touches (CARD-4).
func TestHotFramesDoNotAllocate(t *testing.T) {
	e := Envelope{Type: 1, Shard: 2, Payload: make([]byte, 64), ID: []byte("entity-0123456789")}
	id := string(e.ID)
	buffer := make([]byte, SizeEnvelope(len(id), len(e.Payload)))
	reply := putReply(0, 1, e.Payload)
	scratch := make([]byte, 0, 256)
	var got Envelope
	for name, run := range map[string]func(){
		"put":          func() { PutEnvelope(buffer, &e, id) },
		"append":       func() { scratch = AppendEnvelope(scratch[:0], &e) },
		"parse":        func() { _ = ParseEnvelope(buffer, &got) },
		"split":        func() { _, _, _ = Split(buffer, LaneData, DefaultMaxFrame) },
		"put reply":    func() { PutReply(reply, 0, 1, e.Payload) },
		"parse reply":  func() { _, _, _, _ = ParseReply(reply) },
		"credit":       func() { scratch = AppendCredit(scratch[:0], Credit{1, 2, 3}); _, _ = ParseCredit(scratch) },
		"marker":       func() { scratch = AppendMarker(scratch[:0], Marker{1, 2, 3, 4}); _, _ = ParseMarker(scratch) },
		"cancel":       func() { PutCancel(scratch[:CancelSize], 9); _, _ = ParseCancel(scratch[HeaderSize:CancelSize]) },
		"heartbeat":    func() { scratch = AppendHeartbeat(scratch[:0], Heartbeat{1, 2}); _, _ = ParseHeartbeat(scratch) },
		"whole frame":  func() { scratch = AppendFrame(scratch[:0], KindStatus, 0, 0, e.Payload) },
		"answer probe": func() { scratch, _ = AnswerHeartbeat(scratch[:0], fixed[2].body, 7) },
	} {
		PutEnvelope(buffer, &e, id)
		require.Zero(t, testing.AllocsPerRun(100, run), name)
	}
}

func TestAddressOf(t *testing.T) {
	f := put(&Envelope{Type: 7, Shard: 9}, "e")
	typ, shard, ok := AddressOf(f)
	require.True(t, ok)
	require.Equal(t, [2]uint32{7, 9}, [2]uint32{typ, shard})
	_, _, ok = AddressOf(f[:EnvelopeSize-1])
	require.False(t, ok, "too short")
	f[4] = byte(KindReply)
	_, _, ok = AddressOf(f)
	require.False(t, ok, "another kind")
}

// FuzzEnvelope feeds garbage: no panic; what is accepted encodes to the same bytes.
func FuzzEnvelope(f *testing.F) {
	f.Add(put(&Envelope{Flags: FlagAsk, Corr: 1, Payload: []byte("pay")}, "entity"))
	f.Add(put(&Envelope{}, "e"))
	f.Add(put(&Envelope{Flags: FlagAsk | FlagLimit | FlagHeaders, Limit: 7, Headers: []byte("h")}, "e"))
	f.Add(make([]byte, EnvelopeSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, n, err := Split(b, LaneData, 1<<16)
		var e Envelope
		if err != nil || n == 0 || ParseHeader(frame).Kind != KindEnvelope || ParseEnvelope(frame, &e) != nil {
			return
		}
		require.Equal(t, frame, AppendEnvelope(nil, &e))
		require.Equal(t, frame, put(&e, string(e.ID)))
		typ, shard, ok := AddressOf(frame)
		require.True(t, ok)
		require.Equal(t, e.Type, typ)
		require.Equal(t, e.Shard, shard)
		Arrive(frame, 5)
		require.NoError(t, ParseEnvelope(frame, &e))
		require.NoError(t, ParseEnvelope(Depart(frame, 5, Version), &e))
		old := Depart(frame, 5, 3)
		require.Len(t, old, len(frame)-e.More())
		var plain Envelope
		require.NoError(t, ParseEnvelope(old, &plain))
		require.Equal(t, e.Payload, plain.Payload)
	})
}

// FuzzReply feeds garbage: no panic; what is accepted encodes to the same bytes.
func FuzzReply(f *testing.F) {
	f.Add(putReply(3, 7, []byte("text")))
	f.Add(putReply(0, 0, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, n, err := Split(b, LaneData, 1<<16)
		if err != nil || n == 0 || ParseHeader(frame).Kind != KindReply {
			return
		}
		if status, corr, payload, err := ParseReply(frame); err == nil {
			require.Equal(t, frame, putReply(status, corr, payload))
		}
	})
}

// FuzzFixed feeds garbage to the bodies of fixed size: no panic; what is accepted encodes to the same bytes.
func FuzzFixed(f *testing.F) {
	for _, c := range fixed {
		f.Add(c.body)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := ParseCredit(b); err == nil {
			require.Equal(t, b, AppendCredit(nil, v))
		}
		if v, limit, err := ParseFull(b); err == nil {
			require.Equal(t, b, AppendFull(nil, v, limit))
		}
		if v, err := ParseRoom(b); err == nil {
			require.Equal(t, b, AppendRoom(nil, v))
		}
		if v, err := ParseCancel(b); err == nil {
			require.Equal(t, b, cancelBody(v))
		}
		if v, err := ParseMarker(b); err == nil {
			require.Equal(t, b, AppendMarker(nil, v))
		}
		if v, err := ParseHeartbeat(b); err == nil {
			require.Equal(t, b, AppendHeartbeat(nil, v))
		}
		if answer, err := AnswerHeartbeat(nil, b, 7); err == nil {
			a, err := ParseHeartbeatAck(answer)
			require.NoError(t, err)
			require.Equal(t, uint64(7), a.StepAge)
			require.Equal(t, b, answer[:len(b)])
		}
		if v, err := ParseHeartbeatAck(b); err == nil {
			require.Equal(t, b, AppendHeartbeatAck(nil, v))
		}
	})
}

// What stands in a frame's header is found where Split finds it, and a stamp changes the fence and one flag alone.
func TestOffsets(t *testing.T) {
	e := Envelope{Flags: FlagAsk, Type: 1, Shard: 2, Term: 3, Epoch: 4, Corr: 5, Payload: []byte("p")}
	frame := make([]byte, SizeEnvelope(2, 1))
	PutEnvelope(frame, &e, "id")
	require.Equal(t, len(frame), SizeOf(frame))
	require.Equal(t, KindEnvelope, KindOf(frame))
	StampParked(frame, 7, 8)
	var got Envelope
	require.NoError(t, ParseEnvelope(frame, &got))
	e.Flags, e.Term, e.Epoch, e.ID = FlagAsk|FlagParked, 7, 8, []byte("id")
	require.Equal(t, e, got)
}
