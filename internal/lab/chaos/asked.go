// What an operator learns on each side of a cut: the verbs of the program, run as processes where the node that they
// ask is, and the judgement of what they print.

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// said is what a verb printed, and its exit code.
type said struct {
	out  string
	code int
}

// verbTime bounds a verb; verbBytes is how much of what it prints is kept.
const (
	verbTime  = 15 * time.Second
	verbBytes = 1 << 20
)

// operator runs verbs, and keeps all that they printed.
type operator struct {
	h     *harness
	verbs cli.Options // how the program is started that has the verbs

	mu     sync.Mutex
	f      *os.File // what was asked, and what was printed
	sums   Answers
	faults []string
}

// Answers counts verbs, and what they said.
type Answers struct {
	Asked int      `json:"asked"`          // verbs that were run
	Wrong int      `json:"asked_wrong"`    // of these, not what they should say
	Late  int      `json:"asked_late"`     // of these, when the node had decided before it could be asked
	Told  tellings `json:"losing_told_by"` // of losing nodes

	Living int `json:"living_told"` // nodes of sides that live that named their decision by kith explain
}

func (a *Answers) add(more Answers) {
	a.Asked += more.Asked
	a.Wrong += more.Wrong
	a.Late += more.Late
	a.Told.add(more.Told)
	a.Living += more.Living
}

// faultsMost bounds how many faults a run names; all are counted.
const faultsMost = 50

func newOperator(h *harness, verbs cli.Options) (*operator, error) {
	f, err := os.Create(filepath.Join(h.dir, "asked.txt"))
	if err != nil {
		return nil, fmt.Errorf("transcript: %w", err)
	}
	return &operator{h: h, verbs: verbs, f: f}, nil
}

// run runs a verb in the network of a slot, until it ends or ctx does.
func (o *operator) run(ctx context.Context, slot int, args ...string) said {
	v := o.verbs
	if v.Path == "" {
		v.Path, _ = os.Executable() // it is running
	}
	v.Args = append(slices.Clone(v.Args), args...)
	o.h.net.wrap(slot, &v)
	cmd := exec.CommandContext(ctx, v.Path, v.Args...)
	cmd.Env = append(os.Environ(), v.Env...)
	began := o.h.clock.Now()
	text, err := cmd.CombinedOutput()
	s := said{string(text[:min(len(text), verbBytes)]), exitOf(err)}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sums.Asked++
	fmt.Fprintf(o.f, "%.3f %s$ kith %s\n%sexit code %d after %.3f s\n\n", began.Seconds(), name(slot),
		strings.Join(args, " "), s.out, s.code, (o.h.clock.Now() - began).Seconds())
	return s
}

// ask runs a verb that asks the node of a life.
func (o *operator) ask(ctx context.Context, l *life, verb string) said {
	limited, cancel := context.WithTimeout(ctx, verbTime)
	defer cancel()
	return o.run(limited, l.slot, verb, "--admin", l.admin)
}

// explainEvery is how often a node is asked that has not named its decision yet, for explainFor at most.
const (
	explainEvery = 100 * time.Millisecond
	explainFor   = 10 * time.Second
)

// duringCut asks a node that holds the other side unreachable, and before anything is decided.
func (o *operator) duringCut(ctx context.Context, l *life, here, there []string) {
	var busy sync.WaitGroup
	defer busy.Wait()
	for verb, well := range map[string]func(said) bool{ // all at once: no order
		"members": func(s said) bool { return membersTell(s, there, here) },
		"status":  func(s said) bool { return statusTells(s, o.h.seeds[l.slot]) },
		"explain": func(s said) bool { return explainNames(s, there) },
	} {
		busy.Go(func() {
			s := o.ask(ctx, l, verb)
			if well(s) {
				return
			}
			cli.Pause(ctx, 2*watchEvery) // for the node to tell how it was meanwhile
			switch st, _, _ := l.told(); {
			case !l.running() || st.Decided > 0: // the machine was too busy for the verb
				o.count(func(a *Answers) { a.Late++ })
			default:
				o.fault("kith %s at %s does not say during the cut what it should: %s", verb, name(l.slot), s.tail())
			}
		})
	}
}

// explained asks a node again and again to explain itself, until it names the decision or has ended.
func (o *operator) explained(ctx context.Context, l *life, lost, downs []string, lives bool) (s said, told bool) {
	ctx, cancel := context.WithTimeout(ctx, explainFor)
	defer cancel()
	for l.running() && ctx.Err() == nil && !told {
		s = o.ask(ctx, l, "explain")
		if told = explainTells(s, lost, downs, lives); !told && lives { // a losing node has no time to spare
			cli.Pause(ctx, explainEvery)
		}
	}
	return s, told
}

// replay makes the program tell what the flight records of a node hold, the newest last.
func (o *operator) replay(ctx context.Context, slot int) said {
	files, _ := filepath.Glob(filepath.Join(kept(o.h.dir, name(slot)), "flight-*.kith"))
	if len(files) == 0 {
		return said{"no flight record", codeFailed}
	}
	slices.Sort(files) // their names begin with the time
	limited, cancel := context.WithTimeout(ctx, verbTime)
	defer cancel()
	return o.run(limited, slot, "replay", files[len(files)-1])
}

// fault notes what a verb should have said and did not.
func (o *operator) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	o.mu.Lock()
	if o.sums.Wrong++; len(o.faults) < faultsMost {
		o.faults = append(o.faults, text)
	}
	o.mu.Unlock()
	o.h.line.printf("VIOLATION: %s", text)
}

// count changes what is counted.
func (o *operator) count(change func(*Answers)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.sums)
}

// tellings counts losing nodes by what reported their ends.
type tellings struct {
	Explain int `json:"explain"` // kith explain, while the process ran: the decision
	Events  int `json:"events"`  // kith events, while it ran: that it stops, or was downed
	Replay  int `json:"replay"`  // kith replay of its flight record, afterwards: the decision
	Downed  int `json:"downed"`  // kith replay: a member of its own side had downed it before it decided itself
}

func (t *tellings) add(more tellings) {
	t.Explain += more.Explain
	t.Events += more.Events
	t.Replay += more.Replay
	t.Downed += more.Downed
}

// one is 1 for what is so.
func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// statusTells reports whether kith status says where a node stands, ready or not.
func statusTells(s said, addr string) bool {
	return (s.code == 0 || s.code == 1) && lineOf(s.out, "node", addr+"#") != "" && lineOf(s.out, "state", "") != ""
}

// membersTell reports whether kith members names all of these as unreachable, and nobody else.
func membersTell(s said, gone, others []string) bool {
	no := func(addr string) bool { return strings.Contains(lineOf(s.out, addr, ""), " no, say ") }
	yes := func(addr string) bool { return strings.Contains(lineOf(s.out, addr, ""), " yes") }
	return s.code == 0 && every(gone, no) && every(others, yes)
}

// explainTells reports whether kith explain, or a replay, names the decision that a side came to: the strategy, the
// lost nodes, why, the downed ones, and what becomes of the node.
func explainTells(s said, lost, downs []string, lives bool) bool {
	why, end := "the other side is the majority", "this node stops"
	if lives {
		why, end = "ours is the majority", "this node lives"
	}
	for line := range strings.Lines(s.out) {
		_, rest, found := strings.Cut(line, "keep-majority: ")
		parts := strings.Split(strings.TrimSpace(rest), "; ")
		if !found || len(parts) != 4 || parts[1] != why || parts[3] != end {
			continue
		}
		_, who, _ := strings.Cut(parts[0], ", lost ")
		whom, _ := strings.CutPrefix(parts[2], "downs ")
		if sameWords(who, lost) && sameWords(whom, downs) {
			return true
		}
	}
	return false
}

// explainNames reports whether kith explain says how the node is, and names these as unreachable.
func explainNames(s said, gone []string) bool {
	return s.code == 0 && strings.HasPrefix(s.out, "this node is ") && every(gone, func(addr string) bool {
		for line := range strings.Lines(s.out) {
			if strings.HasPrefix(line, "  "+addr+"#") && strings.Contains(line, " unreachable for ") {
				return true
			}
		}
		return false
	})
}

// eventsTell reports whether kith events, at a losing node, says that the resolver stops it, or that it is downed.
func eventsTell(s said, self string) bool {
	for line := range strings.Lines(s.out) {
		if strings.Contains(line, "stopped by the resolver: the other side is the majority") ||
			strings.HasPrefix(line, "member-downed "+self+"#") {
			return true
		}
	}
	return false
}

// recordTellsWho reports whether a replay ends with the word that a resolver of the node's own side has downed it: a
// member that hears of its leader's decision before its own needs none.
func recordTellsWho(s said, side []string) bool {
	for line := range strings.Lines(s.out) {
		_, rest, found := strings.Cut(line, "  ended     downed: downed by ")
		addr, how, _ := strings.Cut(rest, "#")
		if found && slices.Contains(side, addr) && strings.Contains(how, "(resolver)") {
			return s.code == 0
		}
	}
	return false
}

// sameWords reports whether text has exactly these words, in any order.
func sameWords(text string, words []string) bool {
	return slices.Equal(slices.Sorted(strings.FieldsSeq(text)), slices.Sorted(slices.Values(words)))
}

// lineOf returns the line with first as its first word and a second one that begins so; nothing if there is none.
func lineOf(text, first, second string) string {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == first && strings.HasPrefix(f[1], second) {
			return line
		}
	}
	return ""
}

func every(words []string, is func(string) bool) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !is(w) })
}

// tail returns the end of what was printed, in a line.
func (s said) tail() string {
	return fmt.Sprintf("code %d, %q", s.code, bytes.TrimSpace([]byte(s.out[max(0, len(s.out)-300):])))
}
