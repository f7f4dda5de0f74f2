// Rules for nft: what the network namespace of a node does with packets. Pure.

package chaos

import (
	"fmt"
	"strings"
)

// The marks of connections, by lane. The hello that each begins with names its lane: four letters and eight bytes on.
const (
	markControl = 1 + int(controlLane)
	markData    = 1 + int(dataLane)
	markBulk    = 1 + int(bulkLane)
)

// marking returns the rules that every namespace has from its beginning on: connections are marked by their lanes in
// both directions, before anything is dropped.
func marking() string {
	var b strings.Builder
	fmt.Fprintln(&b, "table inet kith {")
	for _, hook := range []string{"input", "output"} {
		fmt.Fprintf(&b, "  chain mark_%s {\n    type filter hook %s priority -10; policy accept;\n", hook, hook)
		for l := range lanes {
			fmt.Fprintf(&b, "    meta l4proto tcp @ih,64,32 0x4b495448 @ih,128,8 %d ct mark set %d\n", l, 1+l)
		}
		fmt.Fprintln(&b, "  }")
	}
	fmt.Fprintln(&b, "  chain faults {\n    type filter hook input priority 0; policy accept;\n  }\n}")
	return b.String()
}

// faulting returns the rules for the namespace of a node under l: in place of those that were there, at once.
func faulting(l links, to int, addr func(slot int) string) string {
	var b strings.Builder
	fmt.Fprintln(&b, "flush chain inet kith faults")
	for from := range l {
		k := l[from][to]
		rule := func(format string, args ...any) {
			fmt.Fprintf(&b, "add rule inet kith faults ip saddr %s %s\n", addr(from), fmt.Sprintf(format, args...))
		}
		switch {
		case k.Cut == allLanes:
			rule("drop")
		case k.Cut.has(controlLane):
			rule("ct mark %d drop", markControl)
		case k.Cut != 0:
			rule("ct mark { %d, %d } drop", markData, markBulk)
		}
		if k.Loss > 0 {
			rule("numgen random mod 1000 < %d drop", k.Loss)
		}
		// The reset goes to the sender of the packet: mostly the acknowledgement of a chunk that it has. There it comes in by
		// the same rules, which must let it pass.
		if k.Reset > 0 {
			rule("tcp flags & rst == 0 numgen random mod 1000 < %d reject with tcp reset", k.Reset)
		}
	}
	return b.String()
}
