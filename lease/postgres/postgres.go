// The lease: a row with an owner and an end, by the server's clock.

// Package postgres keeps leases of kith in PostgreSQL, 13 or newer: for the resolver's strategy lease-majority and for
// singletons. A lease is a row of the table kith_lease. Its end is a time of the server's clock, the only one that
// counts: when that is set forward a lease ends so much earlier, so keep the steps of that clock smaller than a TTL is
// longer than what a lease is held for. What a failover to a standby that is not synchronous loses, leases among it, is
// lost unnoticed: let both sides reach one server, or synchronous ones.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kith-io/kith/lease"
)

// Lease is a lease.Service in a database. Close it.
type Lease struct {
	pool *pgxpool.Pool
	ttl  time.Duration
	mu   sync.Mutex
	made bool // the table is there
}

// Open returns the leases in a database, by a URL or a string of key=value pairs. It asks no server: one that is away is
// an error of each call. The first call makes the table and its functions if they are not there, in the first schema of
// the search path; the role must be allowed to, or somebody else has to run Schema before. ttl is how long a lease lasts
// after its owner's last word; zero means lease.DefaultTTL. Parameters as pool_max_conns are pgxpool's: each call takes
// a connection as long as it runs. Errors match lease.ErrBadConfig.
func Open(ctx context.Context, url string, ttl time.Duration) (*Lease, error) {
	ttl, err := lease.CheckTTL(ttl)
	if err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", lease.ErrBadConfig, err) // it repeats no password
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("lease: postgres: %w", err)
	}
	return &Lease{pool: pool, ttl: ttl}, nil
}

// Kind is how lease.Open opens leases here: postgres://user@host:5432/database, with the values of a URL of PostgreSQL;
// the password comes from the file passfile, or from the environment.
var Kind = lease.Kind{Scheme: "postgres", Open: func(ctx context.Context, a lease.Address, ttl time.Duration) (
	lease.Service, error) {
	l, err := Open(ctx, a.String(), ttl)
	if err != nil {
		return nil, err
	}
	return l, nil
}}

// TTL implements lease.Service.
func (l *Lease) TTL() time.Duration { return l.ttl }

// Close implements lease.Service.
func (l *Lease) Close() error {
	l.pool.Close()
	return nil
}

// late is the state of the error that a statement raises which runs when its caller waits no more.
const late = "KI004"

// Schema makes what is not there yet. A call of an owner that comes to pass behind its time changes nothing. Rows of
// owners that ended a day ago are cleared away, a few at a time.
const Schema = `
create table if not exists kith_lease (name bytea primary key, owner bytea not null, until timestamptz not null);
create index if not exists kith_lease_until on kith_lease (until);

create or replace function kith_lease_now() returns timestamptz language sql volatile as 'select clock_timestamp()';

create or replace function kith_lease_open(by timestamptz) returns timestamptz language plpgsql as $$
declare at timestamptz := kith_lease_now();
begin
	if at > by then
		raise exception 'the call is over' using errcode = 'KI004';
	end if;
	if current_setting('synchronous_commit') = 'off' then
		perform set_config('synchronous_commit', 'on', true);
	end if;
	return at;
end $$;

create or replace function kith_lease_take(n bytea, o bytea, ms bigint, by timestamptz) returns boolean
	language plpgsql as $$
declare
	at timestamptz;
	is_now kith_lease;
begin
	loop
		insert into kith_lease (name, owner, until) values (n, '', '-infinity') on conflict (name) do nothing;
		select * into is_now from kith_lease where name = n for update;
		exit when found;
	end loop;
	at := kith_lease_open(by);
	if is_now.owner <> o and at < is_now.until then
		return false;
	end if;
	update kith_lease set owner = o, until = at + ms * interval '1 millisecond' where name = n;
	delete from kith_lease where name in (select name from kith_lease
		where until < at - interval '1 day' and name <> n limit 8 for update skip locked);
	return true;
end $$;

create or replace function kith_lease_give(n bytea, o bytea, by timestamptz) returns void language plpgsql as $$
begin
	perform 1 from kith_lease where name = n and owner = o for update;
	perform kith_lease_open(by);
	delete from kith_lease where name = n and owner = o;
end $$;`

// schemaLock is held while the table is made: others that begin wait.
const schemaLock = 0x6b6c7365 // klse

// make makes the table, once.
func (l *Lease) make(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made {
		return nil
	}
	var there bool
	err := l.pool.QueryRow(ctx, "select to_regprocedure('kith_lease_give(bytea, bytea, timestamptz)') is not null").
		Scan(&there)
	if err == nil && !there {
		err = pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", schemaLock); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, Schema)
			return err
		})
	}
	l.made = err == nil
	return err
}

// call runs a statement with, as its last argument, the time of the server at which its caller waits no more.
func (l *Lease) call(ctx context.Context, sql string, args ...any) (ok bool, err error) {
	ctx, cancel := lease.Bound(ctx)
	defer cancel()
	if err := l.make(ctx); err != nil {
		return false, told(err)
	}
	err = l.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		var now time.Time
		if err := c.QueryRow(ctx, "select kith_lease_now()").Scan(&now); err != nil {
			return err
		}
		end, _ := ctx.Deadline() // Bound has set one
		return c.QueryRow(ctx, sql, append(args, now.Add(time.Until(end)))...).Scan(&ok)
	})
	return ok && err == nil, told(err)
}

// told returns an error as callers get it.
func told(err error) error {
	var failed *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed) && failed.Code == late:
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return fmt.Errorf("lease: postgres: %w", err)
}

// Acquire implements lease.Service.
func (l *Lease) Acquire(ctx context.Context, name, owner string) (bool, error) {
	if err := lease.CheckName(name, owner); err != nil {
		return false, err
	}
	return l.call(ctx, "select kith_lease_take($1, $2, $3, $4)", []byte(name), []byte(owner), l.ttl.Milliseconds())
}

// Release implements lease.Service.
func (l *Lease) Release(ctx context.Context, name, owner string) error {
	if err := lease.CheckName(name, owner); err != nil {
		return err
	}
	_, err := l.call(ctx, "select kith_lease_give($1, $2, $3) is not null", []byte(name), []byte(owner))
	return err
}
