// Digests: 64-bit names of a version and of a seen set, so that equal states are recognised by a few bytes (GOS-4).

package gossip

import "github.com/cespare/xxhash/v2"

// Digest names a version, or a seen set, by the hash of its canonical bytes. Zero is no version.
type Digest uint64

// DigestOf returns the digest of canonical bytes, never zero.
func DigestOf(b []byte) Digest {
	if d := Digest(xxhash.Sum64(b)); d != 0 {
		return d
	}
	return 1
}

// Digest names the seen set. It runs over positions, which mean identities only together with the digest of the
// version; compare seen digests of equal versions only.
func (s Seen) Digest() Digest { return DigestOf(s.bits) }
