// Large messages: what becomes of one that a home did not take.

package plane

import "github.com/kith-io/kith/route"

// MaxLargeRefusals is how often a large message goes to the next home because its home was wrong, before it fails.
const MaxLargeRefusals = 8

// Again reports whether a large message whose transfer has ended for a reason goes to the next home: nobody has taken
// it, since its envelope was not sent, and the home is wrong, or was lost while the route leads elsewhere by now
// (moved). before is how often that was so already.
func Again(why route.Reason, sent, moved bool, before int) bool {
	return !sent && before < MaxLargeRefusals && (WrongHome(why) || why == route.PeerLost && moved)
}
