// Metadata: the small map of the application's own as a view shows it, and its bounds.

package cluster

import "errors"

// Bounds of the metadata. Every node holds and gossips all of it, so it is for settings, not for data.
const (
	MaxMetadata      = 64   // keys, deleted ones included: they keep their place and can be set again
	MaxMetadataKey   = 64   // bytes of a key
	MaxMetadataValue = 1024 // bytes of a value
)

// ErrMetadataFull is returned for a new key when MaxMetadata keys are known.
var ErrMetadataFull = errors.New("membership: metadata is full")

// Metadata is one key and its value as a View holds them. The value must not be changed.
type Metadata struct {
	Key   string
	Value []byte
}
