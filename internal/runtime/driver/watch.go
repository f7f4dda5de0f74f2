// Watches of entities: between the machine that carries them and the hosts. Control goroutine, but for what handlers
// call.

package driver

import (
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/route"
)

// carryWatches carries out what a step wants of watches.
func carryWatches(d *Driver, e *node.Effects) {
	for i := range e.Looks {
		exec.LookAtWatch(&d.exec, e.Looks[i])
	}
	for _, id := range e.Gone {
		exec.ForgetWatchers(&d.exec, id)
	}
	for i := range e.Told {
		exec.TellEnd(&d.exec, e.Told[i])
	}
}

// watchTurn tells the node what hosts have of watches.
func watchTurn(d *Driver) {
	_ = d.command(exec.WatchTurn(&d.exec)) // never refused
}

// Watch implements entity.Watching.
func (x hostRuntime) Watch(e *entity.Entity, instance uint32, typ, id string) error {
	r, err := x.region(typ)
	if err != nil {
		return err
	}
	_, sh, err := r.shardOf(id)
	if err != nil {
		return err
	}
	return exec.BeginWatch(x.Host, e, instance, r.hosts, sh, id)
}

// Unwatch implements entity.Watching.
func (x hostRuntime) Unwatch(e *entity.Entity, instance uint32, typ, id string) {
	exec.EndWatch(x.Host, e, instance, route.TypeOf(typ), id)
}
