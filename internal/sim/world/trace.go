// The trace: a running hash of everything that happened, and, when asked for, the same as lines that people can read.

package world

import (
	"fmt"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/internal/core/courier"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// maxTraceLines bounds the text of a trace; the oldest half goes when it is full.
const maxTraceLines = 200_000

// What a record of the trace is about.
const (
	opFrame byte = iota + 1
	opData
	opEvent
	opView
	opHost
	opRoute
	opShard
	opMail
	opEnded
	opFault
	opCall
	opNote
)

// trace hashes structured records, so that a run without text pays for no formatting.
type trace struct {
	digest  xxhash.Digest
	records uint64
	buf     []byte
	text    bool
	lines   []string
	dropped int
	// mark, when it is set, gets the hash after each record, to find where two runs part.
	mark func(record, hash uint64)
}

func newTrace(text bool) *trace {
	t := &trace{text: text}
	t.digest.Reset()
	return t
}

func (t *trace) begin(at time.Duration, node int, op byte) {
	t.buf = wire.AppendU64(t.buf[:0], uint64(at))
	t.buf = append(t.buf, op, byte(node), byte(node>>8))
}

func (t *trace) end() {
	_, _ = t.digest.Write(t.buf)
	t.records++
	if t.mark != nil {
		t.mark(t.records, t.digest.Sum64())
	}
}

func (t *trace) sum() uint64 { return t.digest.Sum64() }

func (t *trace) id(id peer.ID)  { t.buf = peer.AppendID(t.buf, id) }
func (t *trace) u64(v uint64)   { t.buf = wire.AppendU64(t.buf, v) }
func (t *trace) bytes(b []byte) { t.buf = append(t.buf, b...) }
func (t *trace) str(s string)   { t.buf = append(t.buf, s...) }

// line keeps one line of text; callers test t.text first so that nothing is formatted for nobody.
func (t *trace) line(at time.Duration, node int, format string, args ...any) {
	if len(t.lines) >= maxTraceLines {
		half := maxTraceLines / 2
		t.lines = append(t.lines[:0], t.lines[half:]...)
		t.dropped += half
	}
	t.lines = append(t.lines, fmt.Sprintf("%12.6f n%d ", at.Seconds(), node+1)+fmt.Sprintf(format, args...))
}

// frame records the delivery of a control frame, with its body as it was before compression.
func (t *trace) frame(at time.Duration, to int, from peer.ID, kind wire.Kind, body []byte) {
	plain := membership.PlainBody(kind, body)
	t.begin(at, to, opFrame)
	t.buf = append(t.buf, byte(kind))
	t.id(from)
	t.bytes(plain)
	t.end()
	if t.text {
		what := kind.String()
		if p, err := courier.ParseSegment(body); kind == wire.KindSegment && err == nil {
			what = fmt.Sprintf("segment %d (%s)", p.Seq, p.Kind)
		}
		t.line(at, to, "< %s from %s, %d bytes %016x", what, from, len(plain), xxhash.Sum64(plain))
	}
}

// note records something that only needs words: a fault, a count, a call of the test.
func (t *trace) note(at time.Duration, node int, op byte, words string) {
	t.begin(at, node, op)
	t.str(words)
	t.end()
	if t.text {
		t.line(at, node, "%s", words)
	}
}

// String returns the kept lines, the count of those that were dropped first.
func (t *trace) String() string {
	var b strings.Builder
	if t.dropped > 0 {
		fmt.Fprintf(&b, "(%d older lines dropped)\n", t.dropped)
	}
	for _, l := range t.lines {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return b.String()
}
