// Data: the stores of values on the disks of nodes, and where the replicas of a key are.

package operate

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/kith-io/kith/internal/cli"
)

// Data is the verb that says how values lie on the disks of the nodes.
type Data struct {
	Asked
	Store string `arg:"" optional:"" help:"A store: its disks, and what is behind. None: the stores of the node."`
	Key   string `arg:"" optional:"" help:"A key: its replicas, and which versions each has."`
}

// storeCounts are the counts of a store, of those that a table has.
type storeCounts struct {
	Store                               string
	Disks, Keys, Lacking, Hints, Shards int
	HandOn                              struct {
		Leaves, Alone bool
		Disks, Shards int
	} `json:"hand_on"`
	Bytes                               int64
	HintBytes                           int64 `json:"hint_bytes"`
	Repairs, Exchanged, Failed, Damaged uint64
	Conflicted                          uint64
	HintsGone                           uint64 `json:"hints_gone"`
}

// Run prints it; a replica that is behind, or a disk that lacks something, is no error.
func (c *Data) Run(to *Console) error {
	switch {
	case c.Store == "":
		return c.stores(to)
	case c.Key == "":
		return c.store(to)
	}
	return c.key(to)
}

// stores lists the stores of the node; none is exit code 1.
func (c *Data) stores(to *Console) error {
	var a struct{ Stores []storeCounts }
	if err := c.ask(to, "GET", "/v1/values", &a); err != nil {
		return err
	}
	if len(a.Stores) == 0 {
		return errors.New("no store of values is open on this node (docs/values.md)")
	}
	if c.JSON {
		return nil
	}
	rows := [][]string{{"STORE", "DISKS", "KEYS", "BYTES", "LACKING", "HINTS", "SHARDS"}}
	for _, s := range a.Stores {
		rows = append(rows, []string{s.Store, fmt.Sprint(s.Disks), fmt.Sprint(s.Keys), fmt.Sprint(s.Bytes),
			fmt.Sprint(s.Lacking), fmt.Sprint(s.Hints), fmt.Sprint(s.Shards)})
	}
	cli.Table(to.Out, rows...)
	return nil
}

type storeAnswer struct {
	Begun           bool
	Founders        int
	Disk, Mode      string
	N, R, W, Groups int
	Waits           float64 `json:"waits_s"`
	Filling         []struct {
		Group, Keys, Read, Need int
		From                    string
	}
	Disks []struct {
		Disk, Node    string
		Here, Up      bool
		Leaves        bool
		Away          float64 `json:"away_s"`
		Groups, Hints int
		HintBytes     int64 `json:"hint_bytes"`
	}
	Counts storeCounts
}

func (c *Data) path() string { return "/v1/values/" + url.PathEscape(c.Store) }

func (c *Data) store(to *Console) error {
	var a storeAnswer
	if err := c.ask(to, "GET", c.path(), &a); err != nil || c.JSON {
		return err
	}
	cli.Table(to.Out, a.head()...)
	fmt.Fprintln(to.Out)
	rows := [][]string{{"DISK", "NODE", "STATE", "GROUPS", "HINTS HERE", "BYTES OF THESE"}}
	for _, d := range a.Disks {
		state := "up"
		switch {
		case d.Here:
			state = "up, here"
		case d.Node == "":
			state = fmt.Sprintf("away for %.0f s", d.Away)
		case !d.Up:
			state = "does not answer"
		case d.Leaves:
			state = "up, leaves"
		}
		rows = append(rows, []string{d.Disk, d.Node, state, fmt.Sprint(d.Groups), fmt.Sprint(d.Hints),
			fmt.Sprint(d.HintBytes)})
	}
	cli.Table(to.Out, rows...)
	if len(a.Filling) > 0 {
		fmt.Fprintln(to.Out)
		rows = [][]string{{"LACKING GROUP", "KEYS SO FAR", "REPLICAS READ", "READS NOW"}}
		for _, f := range a.Filling {
			rows = append(rows, []string{fmt.Sprint(f.Group), fmt.Sprint(f.Keys), fmt.Sprintf("%d of %d", f.Read, f.Need),
				f.From})
		}
		cli.Table(to.Out, rows...)
	}
	return nil
}

// head is what is said of the store as a whole, and of this disk.
func (a *storeAnswer) head() [][]string {
	c := &a.Counts
	rows := [][]string{{"store", fmt.Sprintf("%s: %s, N %d, R %d, W %d", c.Store, a.Mode, a.N, a.R, a.W)},
		{"this disk", a.Disk}}
	add := func(name, format string, args ...any) {
		rows = append(rows, []string{name, fmt.Sprintf(format, args...)})
	}
	switch {
	case a.Founders == 0:
		add("state", "has not begun: too few empty disks have met")
	case !a.Begun:
		add("state", "this disk is none of the store yet")
	case c.HandOn.Alone:
		add("state", "leaves, and too few others stay: none can take its place")
	case c.HandOn.Disks+c.HandOn.Shards > 0:
		add("state", "leaves: %d disks, and %d shards of records, need it still", c.HandOn.Disks, c.HandOn.Shards)
	case c.HandOn.Leaves:
		add("state", "leaves: nothing needs it any more")
	case len(a.Filling) > 0:
		add("state", "being filled: %d of %d groups are whole", a.Groups-len(a.Filling), a.Groups)
	default:
		add("state", "lacks nothing: %d of 64 groups", a.Groups)
	}
	if a.Waits > 0 && len(a.Filling) > 0 {
		add("reads in", "%.1f s, when no request is under way that knew other disks", a.Waits)
	}
	add("holds", "%d keys, %d shards of records, %d bytes", c.Keys, c.Shards, c.Bytes)
	add("hints", "%d writes wait here for other disks, %d bytes; dropped: %d", c.Hints, c.HintBytes, c.HintsGone)
	add("repaired", "%d after reads; taken from other disks: %d", c.Repairs, c.Exchanged)
	if c.Failed+c.Damaged > 0 {
		add("faults", "%d commits that the disk refused, %d damaged entries", c.Failed, c.Damaged)
	}
	return rows
}

type keyAnswer struct {
	Key      string
	Values   int
	Replicas []struct {
		Disk                          string
		Up, Answered, Lacking, Behind bool
		Hints                         int
		Versions                      []struct {
			By, Hash        string
			Number, Counter uint64
			Bytes           int
			Deleted         bool
		}
	}
}

func (c *Data) key(to *Console) error {
	var a keyAnswer
	if err := c.ask(to, "GET", c.path()+"/key?"+url.Values{"key": {c.Key}}.Encode(), &a); err != nil || c.JSON {
		return err
	}
	rows := [][]string{{"REPLICA", "STATE", "HINTS HERE", "VERSION", "BYTES", "HASH"}}
	for _, r := range a.Replicas {
		row := []string{r.Disk, stateOf(r.Up, r.Answered, r.Lacking, r.Behind), fmt.Sprint(r.Hints)}
		if len(r.Versions) == 0 && r.Answered {
			rows = append(rows, append(row, "none", "", ""))
		} else if len(r.Versions) == 0 {
			rows = append(rows, append(row, "", "", ""))
		}
		for _, v := range r.Versions {
			what := fmt.Sprintf("%s/%d", v.By, v.Number)
			if v.Counter > 0 {
				what += fmt.Sprintf(", counter %d", v.Counter)
			}
			if v.Deleted {
				what += ", a deletion"
			}
			rows = append(rows, append(row, what, fmt.Sprint(v.Bytes), v.Hash))
			row = []string{"", "", ""}
		}
	}
	cli.Table(to.Out, rows...)
	_, err := fmt.Fprintf(to.Out, "values that none replaces: %d\n", a.Values)
	return err
}

// stateOf says how a replica stands.
func stateOf(up, answered, lacking, behind bool) string {
	var words []string
	switch {
	case !up:
		return "away"
	case !answered:
		return "no answer"
	}
	if lacking {
		words = append(words, "being filled")
	}
	if behind {
		words = append(words, "behind")
	}
	if len(words) == 0 {
		return "whole"
	}
	return strings.Join(words, ", ")
}
