// Scripts: stories in testdata, each with prose, commands and the trace that they must give. `go test ./sim -update`
// rewrites the traces; the change then shows in review as a diff of the story.

package sim

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
)

var update = flag.Bool("update", false, "rewrite the expected traces in testdata")

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			s := &script{t: t}
			got := s.play(string(text))
			for _, v := range s.violations() {
				t.Errorf("broken promise: %s", v)
			}
			if *update && !t.Failed() {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
				return
			}
			require.Equal(t, string(text), got, "the story of %s goes another way; -update rewrites it", file)
		})
	}
}

// script plays one story.
type script struct {
	t      *testing.T
	w      *world.World
	out    strings.Builder
	quiet  []string
	events []told
	order  bool // events in the order of the world, not node by node
	answer int
}

func (s *script) violations() []check.Violation {
	if s.w == nil {
		return nil
	}
	s.w.End()
	return checks(s.w).Violations
}

// play runs every block of the story and returns it with the traces that came.
func (s *script) play(text string) string {
	var story strings.Builder
	blocks := strings.Split(strings.TrimRight(text, "\n"), "\n\n")
	for i, block := range blocks {
		if i > 0 {
			story.WriteString("\n\n")
		}
		head, _, _ := strings.Cut(block, "\n----")
		story.WriteString(head)
		commands := 0
		s.out.Reset()
		for line := range strings.SplitSeq(head, "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				commands++
				s.command(strings.Fields(line))
			}
		}
		if commands > 0 {
			out := strings.TrimRight(s.out.String(), "\n")
			if out == "" {
				out = "(nothing)"
			}
			story.WriteString("\n----\n" + out)
		}
	}
	return strings.TrimRight(story.String(), "\n") + "\n"
}

// told is one reported line about a process.
type told struct {
	idx  int
	line string
}

// flush prints what was reported since the last command, node by node: how the nodes' lines interleave is mostly the
// network's dice. A story in which it matters says "inorder".
func (s *script) flush() {
	if !s.order {
		slices.SortStableFunc(s.events, func(a, b told) int { return a.idx - b.idx })
	}
	for _, e := range s.events {
		s.printf("%s", e.line)
	}
	s.events = s.events[:0]
}

func (s *script) tellOf(p *world.Process, format string, args ...any) {
	s.events = append(s.events, told{p.Index, s.w.Name(p.ID) + ": " + fmt.Sprintf(format, args...)})
}

func (s *script) printf(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *script) command(f []string) {
	verb, args := f[0], f[1:]
	if verb == "cluster" {
		s.cluster(args)
		return
	}
	require.NotNil(s.t, s.w, "the story begins with cluster")
	commands := map[string]func([]string){
		"type": s.typ, "start": s.start, "await": s.await, "run": s.run, "partition": s.partition, "cut": s.cut,
		"heal": s.heal, "pause": s.pause, "stick": s.stick, "crash": s.crash, "kill": s.crash, "poweroff": s.powerOff,
		"down": s.down, "quarantine": s.quarantine,
		"restart": s.restart, "leave": s.leave, "move": s.move, "tell": s.tell, "ask": s.ask, "view": s.view,
		"owners": s.owners, "drain": s.drain(true), "undrain": s.drain(false),
		"parked": s.parked, "hide": s.hide, "show": s.show, "prepare": s.prepare, "clock": s.clock,
		"form": s.form, "inorder": func([]string) { s.order = true },
		"survivors": s.survivors, "nolease": s.noLease, "lease": s.leaseOwner, "expect": s.expect, "always": s.always,
		"silent": s.silent, "frames-below": s.framesBelow, "join": s.join, "weather": s.weather, "swallow": s.swallow,
		"break": s.breakAll, "supervise": s.supervise, "wall": s.wall, "step": s.step,
		"sleep":  func(a []string) { s.host(a[0]).Sleep(s.duration(a[1])) },
		"forget": func(a []string) { s.w.Hosts[s.number(a[0])-1].Forget() },
	}
	do, ok := commands[verb]
	require.True(s.t, ok, "unknown command %q", verb)
	do(args)
	s.flush()
}

// cluster n [seed=1] [takeover=20s] [balance=10s|never] [roles=1:store,2:store]
func (s *script) cluster(args []string) {
	cfg := setup.Config{Text: true, Resolver: world.ResolverOff}
	n, seed := s.number(args[0]), uint64(1)
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "seed":
			seed = uint64(s.number(value))
		case "records":
			cfg.Records = value == "true"
		case "lockproof":
			cfg.NoLockProof = value == "false"
		case "deathproof":
			cfg.ProcessDeathIsProof = value == "true"
		case "takeover":
			cfg.Shard.TakeoverTime = s.duration(value)
		case "balance":
			if cfg.Shard.RebalanceInterval = -1; value != "never" {
				cfg.Shard.RebalanceInterval = s.duration(value)
			}
		case "resolver":
			s.resolver(&cfg.Resolver, value)
		case "window":
			cfg.Courier.Messages = s.number(value)
		case "parkwait":
			cfg.Data.ParkWait = s.duration(value)
		case "roles":
			cfg.Roles = make([][]string, n)
			for pair := range strings.SplitSeq(value, ",") {
				host, role, _ := strings.Cut(pair, ":")
				i := s.number(host) - 1
				cfg.Roles[i] = append(cfg.Roles[i], role)
			}
		default:
			require.True(s.t, s.setting(&cfg.Membership, key, value), "unknown setting %q", a)
		}
	}
	s.w, _ = check.NewWorld(n, seed, cfg)
	s.quiet = []string{"convergence-"}
	s.w.OnEvent = func(p *world.Process, line string) {
		for _, word := range s.quiet {
			if word == "all" || strings.HasPrefix(line, word) {
				return
			}
		}
		s.tellOf(p, "%s", line)
	}
}

// show word...: takes back a hide. What is said of convergence is hidden until "show convergence-".
func (s *script) show(args []string) {
	s.quiet = slices.DeleteFunc(s.quiet, func(q string) bool { return slices.Contains(args, q) })
}

// prepare n: node n prepares the whole cluster for its end.
func (s *script) prepare(args []string) {
	p := s.host(args[0])
	p.Live(func() { p.Do(membership.PrepareShutdownCommand{}) })
}

// hide word...: lines that begin with one of the words are left out; "all" leaves out every line about a node.
func (s *script) hide(args []string) {
	for _, a := range args {
		s.quiet = append(s.quiet, a)
	}
}

// type name shards mode [role] [not=2,3] [other=3:store]: host 3 registers it with another role.
func (s *script) typ(args []string) {
	modes := map[string]entity.Mode{"blocking": entity.Blocking, "worker": entity.Worker, "inline": entity.Inline}
	t := &world.EntityType{Type: entity.Type{Name: args[0], Shards: uint32(s.number(args[1])), Mode: modes[args[2]],
		New: func(id string, f route.Fence) entity.Handler { return &scriptEntity{s, s.w.Acting} }}}
	for _, a := range args[3:] {
		if not, ok := strings.CutPrefix(a, "not="); ok {
			for h := range strings.SplitSeq(not, ",") {
				t.Absent = append(t.Absent, s.number(h)-1)
			}
			continue
		}
		if other, ok := strings.CutPrefix(a, "other="); ok {
			host, role, _ := strings.Cut(other, ":")
			t.RoleAt = func(p *world.Process) string {
				if p.Index == s.number(host)-1 {
					return role
				}
				return t.Role
			}
			continue
		}
		t.Role = a
	}
	t.Type = t.WithDefaults()
	s.w.AddType(t)
}

// start n... [seeds=1,2] [form-new] [never-form]
func (s *script) start(args []string) {
	order, hosts := s.seeds(), []int{}
	s.w.FormAs(slices.Contains(args, "never-form"), slices.Contains(args, "form-new"))
	for _, a := range args {
		if a == "never-form" || a == "form-new" {
			continue
		}
		if list, ok := strings.CutPrefix(a, "seeds="); ok {
			order = nil
			for h := range strings.SplitSeq(list, ",") {
				order = append(order, s.number(h)-1)
			}
			continue
		}
		hosts = append(hosts, s.number(a)-1)
	}
	for _, h := range hosts {
		if old := s.w.Hosts[h].Process; old != nil {
			checks(s.w).Excuse(old.ID)
		}
		s.w.Start(h, s.w.Seeds(order))
	}
}

func (s *script) seeds() []int { return []int{0, 1, 2}[:min(3, len(s.w.Hosts))] }

// form [n...]: starts these nodes, or all, and waits until they are Up, without a word.
func (s *script) form(args []string) {
	tell := s.w.OnEvent
	s.w.OnEvent = nil
	if len(args) > 0 {
		s.start(args)
	}
	for i := 0; len(args) == 0 && i < len(s.w.Hosts); i++ {
		s.w.Start(i, s.w.Seeds(s.seeds()))
	}
	s.await(nil)
	s.w.OnEvent = tell
}

// await up: at most two minutes until all running nodes agree on being Up.
func (s *script) await([]string) {
	if !s.w.Until(patience, s.w.Converged) {
		s.printf("not converged: %s", s.w.WhyNotConverged())
	}
}

func (s *script) run(args []string) { s.w.Advance(s.duration(args[0])) }

// clock [below]: the virtual time, or only whether it is below a bound.
func (s *script) clock(args []string) {
	if len(args) == 1 {
		s.printf("before %s: %t", args[0], s.w.Now < s.duration(args[0]))
		return
	}
	s.printf("%v", s.w.Now.Round(time.Millisecond))
}

// partition 1,2 3
func (s *script) partition(args []string) {
	groups := make([][]int, len(args))
	for i, a := range args {
		for h := range strings.SplitSeq(a, ",") {
			groups[i] = append(groups[i], s.number(h)-1)
		}
	}
	(&Cluster{t: s.t, w: s.w}).Partition(groups...)
}

// cut 1 2: nothing from 1 reaches 2.
func (s *script) cut(args []string) {
	s.w.Net.Cuts[s.number(args[0])-1][s.number(args[1])-1] = true
}

func (s *script) heal([]string) { s.w.Net.Heal() }

func (s *script) pause(args []string) { s.host(args[0]).Pause(s.duration(args[1])) }

func (s *script) stick(args []string) { s.host(args[0]).Stick(s.duration(args[1])) }

func (s *script) crash(args []string) {
	for _, a := range args {
		s.host(a).Crash(true)
	}
}

func (s *script) powerOff(args []string) {
	for _, a := range args {
		s.host(a).Crash(false)
	}
}

// down on target...
func (s *script) down(args []string) {
	for _, a := range args[1:] {
		id := s.host(a).ID
		checks(s.w).Excuse(id)
		if err := s.host(args[0]).Command(membership.DownCommand{ID: id}); err != nil {
			s.printf("error: %v", err)
		}
	}
}

// quarantine on target: the first gives up on the second.
func (s *script) quarantine(args []string) {
	id := s.host(args[1]).ID
	if err := s.host(args[0]).Command(membership.QuarantineCommand{ID: id, Reason: "not acknowledged"}); err != nil {
		s.printf("error: %v", err)
	}
}

// supervise d: what ends by itself without having left is started again after d.
func (s *script) supervise(args []string) {
	d := s.duration(args[0])
	s.w.OnEnd = func(p *world.Process) {
		if p.Ended.Kind != membership.EndLeft {
			s.w.After(d, func() { s.start([]string{strconv.Itoa(p.Index + 1)}) })
		}
	}
}

// wall n d: the wall clock of a host steps, and there was no sleep.
func (s *script) wall(args []string) { s.host(args[0]).Do(node.SleptCommand{For: s.duration(args[1])}) }

// step n d: the wall clock of a host goes forward or back, from which only the birth of a cluster takes anything.
func (s *script) step(args []string) { s.w.Hosts[s.number(args[0])-1].Wall += s.duration(args[1]) }

// restart n [seeds=...]
func (s *script) restart(args []string) {
	p := s.host(args[0])
	p.Crash(true)
	s.start(args)
}

func (s *script) leave(args []string) {
	for _, a := range args {
		s.w.Leave(s.host(a))
	}
}

// move type/shard to: the coordinator moves a shard to a host.
func (s *script) move(args []string) {
	typ, shardID, _ := strings.Cut(args[0], "/")
	cmd := shard.MoveCommand{Type: route.TypeOf(typ), Shard: route.ShardID(s.number(shardID)), To: s.host(args[1]).ID}
	var err error
	for _, p := range s.w.Running() {
		if err = p.Command(cmd); err == nil || !errors.Is(err, shard.ErrNotCoordinator) {
			break
		}
	}
	if err != nil {
		s.printf("error: %v", err)
	}
}

// tell on type/id text: the handler prints what it gets.
func (s *script) tell(args []string) {
	typ, id, _ := strings.Cut(args[1], "/")
	r := s.host(args[0]).Region(route.TypeOf(typ))
	if _, err := r.Send(id, []byte(strings.Join(args[2:], " ")), 0); err != nil {
		s.printf("error: %v", err)
	}
}

// ask on type/id text: the answer is printed when it comes.
func (s *script) ask(args []string) {
	typ, id, _ := strings.Cut(args[1], "/")
	s.answer++
	nth := s.answer
	p := s.host(args[0])
	err := p.Ask(patience, typ, id, []byte(strings.Join(args[2:], " ")), func(b []byte, err error) {
		if err != nil {
			s.tellOf(p, "answer %d: error: %v", nth, err)
			return
		}
		s.tellOf(p, "answer %d: %s", nth, b)
	})
	if err != nil {
		s.printf("error: %v", err)
	}
}

func (s *script) view(args []string) {
	for _, a := range args {
		p := s.host(a)
		if p.View == nil {
			s.printf("n%s has no view", a)
			continue
		}
		var bad []string
		for _, id := range p.View.Unreachable {
			bad = append(bad, s.w.Name(id))
		}
		s.printf("%s sees %s; unreachable %v; converged %t", s.w.Name(p.ID), check.ViewText(s.w, p.View), bad,
			p.View.Converged)
	}
}

func (s *script) owners(args []string) {
	t := s.w.TypeOf(route.TypeOf(args[0]))
	for n := range t.Shards {
		homes, fence := checks(s.w).Homes(world.ShardKey{Type: route.TypeOf(t.Name), Shard: route.ShardID(n)})
		if len(homes) == 0 {
			continue
		}
		var where []string
		for _, p := range homes {
			where = append(where, s.w.Name(p.ID))
		}
		s.printf("%s/%d at %s under %s", t.Name, n, strings.Join(where, " and "), world.FenceName(fence))
	}
}

// parked n: how many messages wait on a node.
func (s *script) parked(args []string) {
	total := 0
	for _, r := range s.host(args[0]).Regions {
		total += r.Waiting()
	}
	s.printf("n%s parks %d", args[0], total)
}

func (s *script) host(a string) *world.Process {
	p := s.w.Hosts[s.number(a)-1].Process
	require.NotNil(s.t, p, "node %s was not started", a)
	return p
}

func (s *script) number(a string) int {
	n, err := strconv.Atoi(a)
	require.NoError(s.t, err)
	return n
}

func (s *script) duration(a string) time.Duration {
	d, err := time.ParseDuration(a)
	require.NoError(s.t, err)
	return d
}

// scriptEntity prints what it gets and answers with it.
type scriptEntity struct {
	s *script
	p *world.Process
}

func (e *scriptEntity) Receive(c *entity.Context, payload []byte) error {
	e.s.tellOf(e.p, "%s/%s got %q under %s", c.Type(), c.ID, payload, world.FenceName(c.Fence))
	if !c.Asked() {
		return nil
	}
	if string(payload) == "fail" {
		return errors.New("as you wish")
	}
	return c.Reply(payload)
}

func (e *scriptEntity) Stop(c *entity.Context) {
	e.s.tellOf(e.p, "%s/%s stops under %s", c.Type(), c.ID, world.FenceName(c.Fence))
}
