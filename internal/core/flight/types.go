// Types: what the codec meets in the machines, and the mark of it by which a build knows records of its own kind.

package flight

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/watch"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shard/strategy"
)

var (
	addrType  = reflect.TypeFor[netip.Addr]()
	errorType = reflect.TypeFor[error]()
)

// scratch are types with values that carry nothing from one drained verb to the next: memory that is used again, and
// what is worked out when somebody asks and follows from the rest. They stay those of the node that is read into.
var scratch = map[string]bool{"members.work": true, "members.coder": true, "members.Intern": true,
	"node.Effects": true, "node.parts": true, "sbr.Effects": true, "shard.Effects": true,
	"courier.Effects": true, "session.Effects": true, "tenure.Effects": true, "watch.Effects": true, "fd.forecast": true,
	"peer.Arena": true}

// inPlace are types that functions of a node belong to, or scratch memory: they are read into those that it has.
var inPlace = map[string]bool{"courier.Machine": true, "membership.Machine": true, "shard.Machine": true,
	"watch.Machine": true,
	"sbr.Machine":   true, "members.Store": true, "fd.Monitor": true}

// commands are the local wishes that a driver has a node carry out.
var commands = []any{
	node.LeaveCommand{}, node.SleptCommand{}, node.PlainCommand{}, node.NoticeCommand{}, node.LeaseResult{},
	membership.JoinCommand{}, membership.LeaveCommand{}, membership.DownCommand{}, membership.DownAllCommand{},
	membership.LinkLostCommand{}, membership.ToldRemovedCommand{}, membership.JoinAnotherCommand{},
	membership.RecordedCommand{}, membership.SetMetadataCommand{}, membership.PrepareShutdownCommand{},
	membership.QuarantineCommand{}, membership.ReconfirmCommand{}, membership.OtherClusterCommand{},
	membership.UnreachedCommand{}, membership.SeedsCommand{}, membership.OwnAddressCommand{}, membership.AskedCommand{},
	shard.RegisterCommand{}, shard.WantCommand{}, shard.EagerCommand{}, shard.StoppedCommand{}, shard.RefusedCommand{},
	shard.LeaveCommand{}, shard.DrainCommand{}, shard.SuspendCommand{}, shard.DeathCommand{}, shard.MoveCommand{},
	shard.AskMoveCommand{}, shard.ReadyCommand{}, shard.WishesCommand{}, shard.LoadsCommand{}, shard.MarkedCommand{},
	shard.MarkAgainCommand{}, shard.HandOverCommand{}, shard.EndCommand{}, node.OlderCommand{},
	membership.DefineCommand{}, membership.UndefineCommand{}, membership.MoveInstanceCommand{},
	membership.CompleteCommand{}, membership.OldWireCommand{},
	watch.TurnCommand{}, watch.OlderCommand{}, node.SessionResult{}, membership.ProveCommand{},
	membership.RefoundCommand{}, shard.LingerCommand{},
}

// boxed are the other types that are met behind an interface.
var boxed = []any{
	&rand.PCG{}, fd.PhiAccrual(fd.Settings{MaxSamples: 2}), fd.Deadline(fd.Settings{}), node.Standings{},
	strategy.LeastShards{}, strategy.LoadAware{}, &strategy.ConsistentHash{},
	&strategy.External{}, strategy.Oldest{}, &strategy.FaultError{}, &Asked{},
}

// typeList is types by number and their numbers.
type typeList struct {
	list   []reflect.Type
	number map[reflect.Type]int
}

var boxedTypes = func() (l typeList) {
	l.number = map[reflect.Type]int{}
	for _, v := range slices.Concat(commands, boxed) {
		t := reflect.TypeOf(v)
		l.number[t] = len(l.list)
		l.list = append(l.list, t)
	}
	return l
}()

// roots are the types from which all others are reached.
func roots() []reflect.Type {
	return append([]reflect.Type{reflect.TypeFor[node.Node](), reflect.TypeFor[node.Config](), reflect.TypeFor[answer]()},
		boxedTypes.list...)
}

// targets are the struct types that pointers lead to.
var targets = func() map[reflect.Type]bool {
	found := map[reflect.Type]bool{}
	explore(func(t reflect.Type) {
		if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
			found[t.Elem()] = true
		}
	})
	return found
}()

// explore calls yield once for each type that is reached from the roots, each before those that it is made of.
func explore(yield func(reflect.Type)) {
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		yield(t)
		switch {
		case t == addrType || scratch[t.String()]:
			return
		}
		switch t.Kind() {
		case reflect.Struct:
			for i := range t.NumField() {
				visit(t.Field(i).Type)
			}
		case reflect.Map:
			visit(t.Key())
			visit(t.Elem())
		case reflect.Pointer, reflect.Slice, reflect.Array:
			visit(t.Elem())
		}
	}
	for _, t := range roots() {
		visit(t)
	}
}

// shape is what the codec has to know of a type.
type shape struct {
	least int  // bytes of its shortest value
	holds bool // it is, or has in itself, structs that pointers lead to
}

var shapes sync.Map // of reflect.Type

func shapeOf(t reflect.Type) shape {
	if s, ok := shapes.Load(t); ok {
		return s.(shape)
	}
	s := shape{least: 1, holds: targets[t]}
	switch {
	case t == addrType:
	case scratch[t.String()] || t.Kind() == reflect.Func:
		s.least = 0
	case t.Kind() == reflect.Struct:
		s.least = 0
		for i := range t.NumField() {
			f := t.Field(i).Type
			inner := shapeOf(f)
			s.least += inner.least
			s.holds = s.holds || inner.holds && (f.Kind() == reflect.Struct || f.Kind() == reflect.Array)
		}
	case t.Kind() == reflect.Array:
		inner := shapeOf(t.Elem())
		s = shape{least: t.Len() * inner.least, holds: inner.holds}
	case t.Kind() == reflect.Slice:
		s.holds = shapeOf(t.Elem()).holds
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		s.least = 8
	}
	shapes.Store(t, s)
	return s
}

// Layout is the mark of the types that this build keeps in a record. Another build with another layout cannot read it.
var Layout = sync.OnceValue(func() uint64 {
	h := xxhash.New()
	describe(h)
	return h.Sum64()
})

// describe writes all types with their fields.
func describe(w io.Writer) {
	explore(func(t reflect.Type) {
		var line strings.Builder
		fmt.Fprintf(&line, "%s %s", t.Kind(), t)
		if t.Kind() == reflect.Struct && t != addrType && !scratch[t.String()] {
			for i := range t.NumField() {
				fmt.Fprintf(&line, " %s:%s", t.Field(i).Name, t.Field(i).Type)
			}
		}
		// To a hash or memory, which take everything.
		_, _ = fmt.Fprintln(w, line.String())
	})
}
