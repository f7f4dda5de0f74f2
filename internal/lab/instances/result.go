// The account: what was sent, held against what came.

package instances

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
)

// ErrFailed is wrapped by the error of a run with a result that must not be.
var ErrFailed = errors.New("instances")

// Result is the last line. Per hand-off; all but kill and cut are of what was planned: moves, a join, a leave.
type Result struct {
	Nodes     int                 `json:"nodes"`
	Instances int                 `json:"instances"` // of each partition
	Moves     int                 `json:"moves"`     // by hand, of each partition
	Handoffs  map[string]*Account `json:"handoffs"`
	Seconds   float64             `json:"seconds"`
}

// Account is that of one hand-off.
type Account struct {
	Sent      uint64  `json:"sent"`        // accepted
	Handled   uint64  `json:"handled"`     // once at least
	Returned  uint64  `json:"returned"`    // came back to the sender's program
	Lost      uint64  `json:"lost"`        // neither
	Doubled   uint64  `json:"doubled"`     // handled again
	Reordered uint64  `json:"reordered"`   // handled behind a later one of the same sender
	Lives     int     `json:"lives"`       // of instances that got messages
	Overlap   float64 `json:"overlap_ms"`  // longest time that two of one slot got messages
	Gap       float64 `json:"gap_ms"`      // longest time from the last message of one to the first of the next
	KillLost  uint64  `json:"kill_lost"`   // while a node was killed: of all instances; neither handled by one that lives
	KillGap   float64 `json:"kill_gap_ms"` // from the kill until each instance that was killed got messages elsewhere
	// The same of a node that was cut off, which sends too; and for how long one that was cut off got messages beside its
	// successor.
	CutLost    uint64  `json:"cut_lost"`
	CutGap     float64 `json:"cut_gap_ms"`
	CutOverlap float64 `json:"cut_overlap_ms"`
}

// account holds the reports of all processes against each other.
func account(path string, reports []report) *Account {
	a := &Account{}
	slots := map[int][]life{}
	for _, r := range reports {
		for _, l := range r.Lives {
			if l.Path == path && len(l.Got) > 0 {
				slots[l.Slot] = append(slots[l.Slot], l)
				a.Lives++
			}
		}
	}
	for slot, lives := range slots { // sums and maxima: the order does not show
		slices.SortFunc(lives, func(x, y life) int { return cmp.Compare(x.First, y.First) })
		for i := range lives[1:] {
			between := lives[i+1].First - lives[i].Last
			a.Gap, a.Overlap = max(a.Gap, millis(between)), max(a.Overlap, millis(-between))
		}
		got := map[int][]numbers{}
		for _, l := range lives {
			for _, g := range l.Got {
				got[g.Sender] = append(got[g.Sender], g)
			}
		}
		for sender, r := range reports {
			a.add(got[sender], r.Back[key(path, slot)], r.Sent[key(path, slot)])
		}
	}
	return a
}

// add holds what one sender has sent to one slot against what came.
func (a *Account) add(got []numbers, back []uint32, sent uint32) {
	slices.SortStableFunc(got, func(x, y numbers) int { return cmp.Compare(x.At, y.At) })
	times := make([]uint8, sent+1)
	most := uint32(0)
	for _, g := range got {
		for n := g.From; n <= g.To && n <= sent; n++ {
			if times[n] > 0 {
				a.Doubled++
			} else {
				a.Handled++
			}
			times[n] = 1
		}
		if g.From < most {
			a.Reordered += uint64(min(g.To, most) - g.From + 1)
		}
		most = max(most, g.To)
	}
	for _, n := range back {
		if n <= sent && times[n] == 0 {
			a.Returned++
			times[n] = 2
		}
	}
	a.Sent += uint64(sent)
	for n := uint32(1); n <= sent; n++ {
		if times[n] == 0 {
			a.Lost++
		}
	}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// verdict says what must not be, of each hand-off what it promises.
func (r *Result) verdict() error {
	var errs []error
	for path, a := range r.Handoffs { // joined: the order does not matter
		h := handoffs[path]
		must := func(ok bool, what string) {
			if !ok {
				errs = append(errs, fmt.Errorf("%w: %s: %s: %+v", ErrFailed, path, what, *a))
			}
		}
		must(a.Sent > 0 && a.Lost+a.Doubled == 0, "lost or doubled")
		must(a.Returned == 0 || h.Old == cluster.OldDrops && h.New != cluster.NewBuffers || h.Late == cluster.LateDrops,
			"came back")
		must(a.Reordered == 0 && a.CutOverlap == 0 || h.New != cluster.NewBuffers, "out of order, or two after a cut")
		must(a.Overlap == 0 || h.Old == cluster.OldKeeps && h.New != cluster.NewBuffers, "two at a time")
	}
	return errors.Join(errs...)
}
