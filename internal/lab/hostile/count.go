// Counters: the names that attacks give to what a node counts.

package hostile

import (
	"fmt"
	"strings"

	"github.com/kith-io/kith"
)

// Count returns the counter of a node that an attack names: refused/REASON, tls/REASON, or a word.
func Count(s *kith.Stats, name string) uint64 {
	if reason, ok := strings.CutPrefix(name, "refused/"); ok {
		return s.Transport.Refused[reason]
	}
	if reason, ok := strings.CutPrefix(name, "tls/"); ok {
		return s.Transport.TLSRefused[reason]
	}
	switch name {
	case "hello":
		return s.Transport.FaultsHello
	case "frames":
		return s.Transport.FaultsFrames
	case "silent":
		return s.Transport.SaidNothing
	case "too-many-each":
		return s.Transport.TooManyEach
	case "too-often":
		return s.Transport.OverRate
	case "control-dropped":
		return s.ControlDropped
	case "nonsense":
		return s.InvalidFrames
	case "unregistered":
		return s.Unregistered
	case "partials-full":
		return s.Transport.PartialsFull
	case "late":
		return s.AsksLate
	case "refused-here", "refused-or-unregistered":
		n := uint64(0)
		if name != "refused-here" {
			n = s.Unregistered
		}
		for i := range s.Types {
			for _, m := range s.Types[i].Refused {
				n += m
			}
		}
		return n
	case "bulk-refused":
		return s.Transport.Bulk.Received.Refused
	case "segments-of-strangers":
		return s.Courier.NonMembers
	case "segments-stale":
		return s.Courier.Stale
	case "segments-again":
		return s.Courier.Duplicates
	case "segments-ahead":
		return s.Courier.OutOfOrder
	}
	return countMembers(s, name)
}

// countMembers is Count for what the membership counts.
func countMembers(s *kith.Stats, name string) uint64 {
	switch name {
	case "strangers":
		return s.Members.NonMembers
	case "misaddressed":
		return s.Members.Misaddressed
	case "stale-welcome":
		return s.Members.StaleWelcome
	case "disbelieved":
		return s.Members.Disbelieved
	case "gossip-same":
		return s.Members.Same
	case "gossip-older":
		return s.Members.Older
	}
	panic(fmt.Sprintf("hostile: no counter is called %q", name))
}
