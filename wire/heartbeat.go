// Heartbeats: the probe, its answer, and the pure function that makes one from the other on the receiver's loop.

package wire

// Heartbeat is a probe: the sender's sequence number and its own clock, both echoed untouched. Numbers count from one;
// zero is the last probe, after which the sender is not expected to probe this peer any more. It is repeated until it
// was answered.
type Heartbeat struct {
	Seq  uint64
	Sent uint64 // sender's monotonic nanoseconds
}

// HeartbeatAck answers a probe. StepAge is how long ago, in nanoseconds, the answering node's control loop last
// stepped: an answer from a node with a stuck control loop does not count as life.
type HeartbeatAck struct {
	Seq     uint64
	Sent    uint64
	StepAge uint64
}

// AppendHeartbeat appends the body of a heartbeat (16 bytes).
func AppendHeartbeat(dst []byte, h Heartbeat) []byte { return AppendU64(AppendU64(dst, h.Seq), h.Sent) }

// ParseHeartbeat reads the body of a heartbeat.
func ParseHeartbeat(body []byte) (Heartbeat, error) {
	r := NewReader(KindHeartbeat, body)
	h := Heartbeat{r.U64(), r.U64()}
	return h, r.Done()
}

// AppendHeartbeatAck appends the body of an answer (24 bytes).
func AppendHeartbeatAck(dst []byte, a HeartbeatAck) []byte {
	return AppendU64(AppendU64(AppendU64(dst, a.Seq), a.Sent), a.StepAge)
}

// ParseHeartbeatAck reads the body of an answer.
func ParseHeartbeatAck(body []byte) (HeartbeatAck, error) {
	r := NewReader(KindHeartbeatAck, body)
	a := HeartbeatAck{r.U64(), r.U64(), r.U64()}
	return a, r.Done()
}

// AnswerHeartbeat appends the body of the answer to the probe in body. Transport and simulator both answer with it.
// stepAge is the age of the node's last control step in nanoseconds.
func AnswerHeartbeat(dst, body []byte, stepAge uint64) ([]byte, error) {
	h, err := ParseHeartbeat(body)
	if err != nil {
		return dst, err
	}
	return AppendHeartbeatAck(dst, HeartbeatAck{h.Seq, h.Sent, stepAge}), nil
}
