// Package operate is the verbs of the node binary that ask a running node, and have it do something, over its admin
// interface (kith run --admin).
package operate

import "io"

// Console is where a verb prints.
type Console struct {
	Out   io.Writer // results; what peers have named has no control characters there
	Clear func()    // clears the screen; nil where there is none
}
