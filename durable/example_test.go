// The example of the package.

package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/store"
)

// purse is the state of an entity, pay a message to one.
type purse struct{ Coins int64 }

type pay struct{ In, Out int64 }

// purses says what becomes of a message: what is left in tx.State is stored before the asker gets its answer.
func purses(tx *durable.Tx[purse], p *pay) (int64, error) {
	if p.Out > tx.State.Coins {
		return 0, fmt.Errorf("%s has %d", tx.ID(), tx.State.Coins) // nothing is written
	}
	tx.State.Coins += p.In - p.Out
	return tx.State.Coins, nil
}

// A purse survives its owner; a real program opens store/sqlite or store/postgres in the place of the memory.
func Example() {
	ctx := context.Background()
	node, err := kith.Start(ctx, kith.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	db := store.Memory()
	bank, err := durable.Register(node, durable.Type[purse, pay, int64]{Name: "purse", Store: db, Handle: purses})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range []pay{{In: 7}, {Out: 5}, {Out: 5}} {
		left, err := bank.Ask(ctx, "anna", &p)
		if errors.Is(err, durable.ErrRejected) {
			fmt.Println(err)
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(left)
	}
	// Output:
	// 7
	// 2
	// durable: the handler returned an error: anna has 2
}
