// Headers: those of a request that go to the entity, as the bytes beside its message.

package gateway

import (
	"net/http"
	"net/textproto"
	"strings"
)

// ParseHeaders reads what a gateway has sent beside a message: the headers of the request that Config.Headers names
// (kith.Context.Headers). What is no such line is left out.
func ParseHeaders(b []byte) http.Header {
	h := http.Header{}
	for line := range strings.SplitSeq(string(b), "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			h[textproto.CanonicalMIMEHeaderKey(name)] = append(h[textproto.CanonicalMIMEHeaderKey(name)], value)
		}
	}
	return h
}
