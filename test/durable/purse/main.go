// The program of docs/durable.md: purses that survive their process, in a SQLite file.

package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/store/sqlite"
)

type purse struct{ Coins int64 } // the state of an entity, stored as JSON
type pay struct{ Coins int64 }   // a message to one

func purses(tx *durable.Tx[purse], p *pay) (int64, error) {
	if tx.State.Coins+p.Coins < 0 {
		return 0, fmt.Errorf("%s has %d", tx.ID(), tx.State.Coins) // nothing is written
	}
	tx.State.Coins += p.Coins
	return tx.State.Coins, nil // the answer leaves when the state is stored
}

func main() {
	ctx := context.Background()
	coins := must(strconv.ParseInt(os.Args[1], 10, 64))
	db := must(sqlite.Open("purses.db")) // or postgres.Open(ctx, url); store.Memory() in tests
	node := must(kith.Start(ctx, kith.Config{Name: "bank"}))
	bank := must(durable.Register(node, durable.Type[purse, pay, int64]{Name: "purse", Store: db, Handle: purses}))
	fmt.Println(must(bank.Ask(ctx, "anna", &pay{Coins: coins}))) // from any node of the cluster
	must(0, node.Close())
	must(0, db.Close()) // behind its node
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
