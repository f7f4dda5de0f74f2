// Verdicts: what to do about what a peer holds, from its status, its version or its state (GOS-4).

package gossip

import "github.com/kith-io/kith/internal/base/enum"

// Verdict is the answer to a peer's status or version.
type Verdict uint8

// The answers.
const (
	Nothing     Verdict = 0 // both hold the same
	SendSeen    Verdict = 1 // same version, different seen sets: exchange bitmaps
	SendVersion Verdict = 2 // different versions: exchange clocks first
	SendState   Verdict = 3 // ours is newer: send it
	AskState    Verdict = 4 // theirs is newer: ask for it
	Exchange    Verdict = 5 // concurrent, or equal clocks over different contents: send ours, ask for theirs
)

var verdictNames = []string{Nothing: "nothing", SendSeen: "send-seen", SendVersion: "send-version",
	SendState: "send-state", AskState: "ask-state", Exchange: "exchange"}

// String names the verdict.
func (v Verdict) String() string { return enum.Name(verdictNames, v, "verdict") }

// MarshalText gives the name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (v *Verdict) UnmarshalText(text []byte) error { return enum.Parse(v, text) }

// JudgeStatus compares digests of version and seen set.
func JudgeStatus(mine, theirs, mySeen, theirSeen Digest) Verdict {
	switch {
	case mine != theirs:
		return SendVersion
	case mySeen != theirSeen:
		return SendSeen
	}
	return Nothing
}

// JudgeVersion compares clocks with digests that differ. Equal clocks over different contents should not be; exchanging
// states heals it.
func JudgeVersion(mine, theirs Clock) Verdict {
	switch mine.Compare(theirs) {
	case After:
		return SendState
	case Before:
		return AskState
	}
	return Exchange
}

// SpeedUp reports whether rounds come three times as often: while fewer than half of n members have seen the version,
// or a member is Down (GOS-5). Half of an odd n is not rounded down: one of three is fewer than half.
func SpeedUp(seen, n int, anyDown bool) bool { return anyDown || 2*seen < n }
