// Command account keeps accounts in a SQLite file: account FILE NAME CENTS books one amount and prints what is left.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	_ "modernc.org/sqlite" // or the driver of your database

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/sqlfence"
)

type balance struct{ Cents int64 } // what is stored of an entity
type account struct{ *sqlfence.State[balance] }

var errShort = kith.NewError("account-short", kith.KindConflict, "the account is short")

func (a *account) Receive(c *kith.Context, payload []byte) error {
	cents, err := strconv.ParseInt(string(payload), 10, 64)
	if err != nil {
		return err
	}
	if a.Value.Cents+cents < 0 {
		return errShort // nothing has changed
	}
	a.Value.Cents += cents
	err = a.Save(c, func(tx *sql.Tx) error { // committed with the balance, or not at all
		_, err := tx.Exec("insert into journal (account, cents) values (?, ?)", c.ID, cents)
		return err
	})
	if err != nil || !c.Asked() {
		return err // not stored: the entity goes, and the next message loads it anew
	}
	return c.Reply(strconv.AppendInt(nil, a.Value.Cents, 10)) // it is stored
}

func (a *account) Stop(*kith.Context) {} // what was answered is stored

func accounts(s *sqlfence.Store) kith.EntityType {
	idle := 10 * time.Minute // then it leaves memory, and the next message loads it
	return kith.EntityType{Name: "account", IdleAfter: idle, Open: func(c *kith.Context) (kith.Handler, error) {
		state, err := sqlfence.Load(c, s, kith.JSON[balance]()) // claims, then reads
		return &account{state}, err
	}}
}

func main() {
	ctx := context.Background()
	file, name, cents := os.Args[1], os.Args[2], os.Args[3]
	db := must(sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)"))
	store := must(sqlfence.Open(ctx, db, sqlfence.SQLite))
	must(db.Exec("create table if not exists journal (account text not null, cents integer not null)"))
	node := must(kith.Start(ctx, kith.Config{Name: "bank"})) // alone: with Seeds it is one of many
	region := must(node.Register(accounts(store)))
	fmt.Printf("%s has %s\n", name, must(region.Ask(ctx, name, []byte(cents))))
	must(0, node.Leave(ctx))
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
