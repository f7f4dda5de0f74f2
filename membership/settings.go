// Settings: what all members must agree on, compared on every way into the cluster (JOIN-1).

package membership

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/kith-io/kith/wire"
)

// Bounds of the settings that must agree.
const (
	MaxSettings     = 64
	MaxSettingKey   = 64  // bytes
	MaxSettingValue = 128 // bytes
)

// Setting is one value on which all members must agree. What only one side knows is not compared, so that a rolling
// update may add settings.
type Setting struct{ Key, Value string }

// sortSettings returns them by key, the first of equal keys.
func sortSettings(list []Setting) []Setting {
	list = slices.Clone(list)
	sort.SliceStable(list, func(i, k int) bool { return list[i].Key < list[k].Key })
	return slices.CompactFunc(list, func(a, b Setting) bool { return a.Key == b.Key })
}

// differ returns the first key that both lists have with different values, and the values; ok is false when there is
// none. Both are sorted.
func differ(ours, theirs []Setting) (key, our, their string, ok bool) {
	for len(ours) > 0 && len(theirs) > 0 {
		switch c := cmp.Compare(ours[0].Key, theirs[0].Key); {
		case c < 0:
			ours = ours[1:]
		case c > 0:
			theirs = theirs[1:]
		case ours[0].Value != theirs[0].Value:
			return ours[0].Key, ours[0].Value, theirs[0].Value, true
		default:
			ours, theirs = ours[1:], theirs[1:]
		}
	}
	return "", "", "", false
}

// shownOfValue is how many bytes of a value a refusal shows: with the longest key two of them fit maxReasonSize.
const shownOfValue = 72

// differs says in words how a joiner's settings differ from a member's; empty when they agree.
func differs(members, joiners []Setting) string {
	key, a, b, ok := differ(members, joiners)
	if !ok {
		return ""
	}
	return clip(fmt.Sprintf("setting %q is %q in the cluster and %q at the joiner", key, clip(a, shownOfValue),
		clip(b, shownOfValue)), maxReasonSize)
}

// clip cuts s to n bytes.
func clip(s string, n int) string { return s[:min(len(s), n)] }

// disagree deals with settings that differ: reported, and true when this node insists on them.
func (c *core) disagree(text string) (refuse bool) {
	if text == "" || !c.cfg.LenientSettings {
		return text != ""
	}
	c.stats.SettingsDiffer++
	c.tell(Event{Kind: SettingsDiffer, Detail: text})
	return false
}

func appendSettings(b []byte, list []Setting) []byte {
	b = wire.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = wire.AppendString(wire.AppendString(b, s.Key), s.Value)
	}
	return b
}

func readSettings(r *wire.Reader) []Setting {
	n := r.Count(3, MaxSettings)
	if n == 0 {
		return nil
	}
	list := make([]Setting, 0, n)
	for range n {
		s := Setting{r.String(MaxSettingKey), r.String(MaxSettingValue)}
		check(r, s.Key != "", len(list) == 0 || list[len(list)-1].Key < s.Key)
		if r.Err() != nil {
			return nil
		}
		list = append(list, s)
	}
	return list
}

func (c *Config) validateSettings(fault func(format string, a ...any)) {
	if len(c.Settings) > MaxSettings {
		fault("%d settings, at most %d", len(c.Settings), MaxSettings)
	}
	for _, s := range c.Settings {
		if s.Key == "" || len(s.Key) > MaxSettingKey || len(s.Value) > MaxSettingValue {
			fault("setting %q: the key must have 1 to %d bytes and the value at most %d, has %d", s.Key, MaxSettingKey,
				MaxSettingValue, len(s.Value))
		}
	}
}
