//go:build linux

// A driver around another one, with commits that lose their answers.

package sqlfence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
)

// fate is what becomes of the next commit.
type fate int32

const (
	told   fate = iota
	done        // it takes place, and gives no answer
	undone      // it does not take place, and gives no answer
	late        // it takes place when somebody calls faulty.finish; no answer comes before
)

var errAnswer = errors.New("the answer was lost")

// faulty is a connector with commits of a fate.
type faulty struct {
	driver driver.Driver
	source string
	next   atomic.Int32
	left   atomic.Pointer[func() error]
}

// open opens a database through it.
func (e engine) faulty(source string) (*faulty, *sql.DB, error) {
	db, err := sql.Open(e.driver, source)
	if err != nil {
		return nil, nil, err
	}
	f := &faulty{driver: db.Driver(), source: source}
	return f, sql.OpenDB(f), db.Close()
}

// finish ends the commit that is late.
func (f *faulty) finish() error { return (*f.left.Load())() }

func (f *faulty) Driver() driver.Driver { return f.driver }

func (f *faulty) Connect(context.Context) (driver.Conn, error) {
	c, err := f.driver.Open(f.source)
	if err != nil {
		return nil, err
	}
	return &conn{c, f, false}, nil
}

// conn is a connection.
type conn struct {
	driver.Conn
	f     *faulty
	stuck bool
}

func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	t, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	return &tx{t, c}, nil
}

func (c *conn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, q, args)
}

func (c *conn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, q, args)
}

func (c *conn) PrepareContext(ctx context.Context, q string) (driver.Stmt, error) {
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, q)
}

func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if is, ok := c.Conn.(driver.NamedValueChecker); ok {
		return is.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// IsValid keeps one with a late commit out of the pool.
func (c *conn) IsValid() bool { return !c.stuck }

// Close leaves one with a late commit open.
func (c *conn) Close() error {
	if c.stuck {
		return nil
	}
	return c.Conn.Close()
}

// tx is a transaction.
type tx struct {
	driver.Tx
	c *conn
}

func (t *tx) Commit() error {
	switch fate(t.c.f.next.Swap(int32(told))) {
	case done:
		return errors.Join(errAnswer, t.Tx.Commit())
	case undone:
		return errors.Join(errAnswer, t.Tx.Rollback())
	case late:
		t.c.stuck = true
		end := func() error { return errors.Join(t.Tx.Commit(), t.c.Conn.Close()) }
		t.c.f.left.Store(&end)
		return errAnswer
	}
	return t.Tx.Commit()
}
