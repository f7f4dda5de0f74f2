// Pressure: what the receiver of a data connection says back on it of mailboxes that are full, and of room again.

package wire

// Full names what is full at the receiver of a data connection: one entity, or all of the node, by the reason.
type Full struct {
	Type, Shard uint32 // of the entity; zero for a bound of the whole node
	Hash        uint64 // of the entity's id (xxhash64, seed 0); zero for a bound of the whole node
	Reason      uint16 // delivery reason (package route) that a message would be refused with, were it no waiting one
}

// AppendFull appends the body of a KindFull frame (26 bytes): what is full, and the value of the bound in bytes.
func AppendFull(dst []byte, f Full, limit uint64) []byte { return AppendU64(appendFull(dst, f), limit) }

// AppendRoom appends the body of a KindRoom frame (18 bytes): what has room again.
func AppendRoom(dst []byte, f Full) []byte { return appendFull(dst, f) }

func appendFull(dst []byte, f Full) []byte {
	return AppendU16(AppendU64(AppendU32(AppendU32(dst, f.Type), f.Shard), f.Hash), f.Reason)
}

// ParseFull reads the body of a KindFull frame.
func ParseFull(body []byte) (f Full, limit uint64, err error) {
	r := NewReader(KindFull, body)
	f = readFull(&r)
	limit = r.U64()
	return f, limit, r.Done()
}

// ParseRoom reads the body of a KindRoom frame.
func ParseRoom(body []byte) (Full, error) {
	r := NewReader(KindRoom, body)
	f := readFull(&r)
	return f, r.Done()
}

func readFull(r *Reader) Full { return Full{r.U32(), r.U32(), r.U64(), r.U16()} }
