// Benchmarks of what every routed message pays: envelope in, split, envelope out.

package wire

import "testing"

var benchEnvelope = Envelope{Type: 1, Shard: 2, Term: 3, Epoch: 4, Payload: make([]byte, 64)}

const benchID = "entity-012345678" // 16 bytes, as the measured hot path

// BenchmarkPutEnvelope encodes into a reserved span: 16 bytes of id, 64 of payload.
func BenchmarkPutEnvelope(b *testing.B) {
	buffer := make([]byte, SizeEnvelope(len(benchID), len(benchEnvelope.Payload)))
	b.SetBytes(int64(len(buffer)))
	b.ReportAllocs()
	for b.Loop() {
		PutEnvelope(buffer, &benchEnvelope, benchID)
	}
}

// BenchmarkParseEnvelope decodes one whole frame.
func BenchmarkParseEnvelope(b *testing.B) {
	frame := put(&benchEnvelope, benchID)
	var e Envelope
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		if ParseEnvelope(frame, &e) != nil {
			b.Fatal("does not parse")
		}
	}
}

// BenchmarkSplitAndParse walks a full read buffer frame by frame, per message.
func BenchmarkSplitAndParse(b *testing.B) {
	var stream []byte
	for len(stream) < 64<<10 {
		stream = append(stream, put(&benchEnvelope, benchID)...)
	}
	var e Envelope
	rest := stream
	b.ReportAllocs()
	for b.Loop() {
		frame, n, err := Split(rest, LaneData, DefaultMaxFrame)
		if err != nil || ParseEnvelope(frame, &e) != nil {
			b.Fatal("does not parse")
		}
		if rest = rest[n:]; len(rest) == 0 {
			rest = stream
		}
	}
}
