// Codec: how a user's message type becomes bytes and back.

package route

// Codec turns a message of type M into bytes and back. Append appends the encoding of m to dst and returns it; it must
// not keep dst. ParseInto fills m from b; b is valid only during the call unless the codec copies. A codec is used from
// many goroutines at once. Codecs that parse into their value without allocating keep the zero-allocation promise.
type Codec[M any] interface {
	Append(dst []byte, m *M) ([]byte, error)
	ParseInto(b []byte, m *M) error
}
