// Marks: what entities remember of messages that they have had, in a table of its own.

package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// marksSchema makes what marks need. kith_mark is kith_write for a commit that has marks. What kith_marks_forget has
// found old may be written anew before it is locked, so it is asked for its age again then.
const marksSchema = `

create table if not exists kith_marks (
	key bigint not null, id bytea not null, who bytea not null, number bigint not null, at bigint not null, value bytea,
	primary key (key, id, who));
create index if not exists kith_marks_at on kith_marks (key, at);

create or replace function kith_mark(t text, s bigint, f bytea, ids bytea[], versions bigint[], fresh boolean[],
	schemas integer[], states bytea[], outboxes bytea[], alarms bytea[], dues bigint[], wakes bigint[], nonces bytea[],
	gone bytea[], were bigint[], raised bigint, m_ids bytea[], m_froms bytea[], m_numbers bigint[], m_ats bigint[],
	m_values bytea[]) returns void language plpgsql as $$
declare n bigint;
begin
	perform kith_write(t, s, f, ids, versions, fresh, schemas, states, outboxes, alarms, dues, wakes, nonces, gone, were,
		raised);
	select r.k into n from kith_row(t, s, f, false) r;
	insert into kith_marks as m (key, id, who, number, at, value)
		select n, w.id, w.who, w.number, w.at, w.value
			from unnest(m_ids, m_froms, m_numbers, m_ats, m_values) as w (id, who, number, at, value)
		on conflict (key, id, who) do update set number = excluded.number, at = excluded.at, value = excluded.value
			where m.number < excluded.number;
end $$;

create or replace function kith_marks_of(t text, s bigint, f bytea, of_id bytea, whos bytea[])
	returns table (r_who bytea, r_number bigint, r_at bigint, r_value bytea) language plpgsql as $$
declare n bigint := (select k from kith_row(t, s, f, false));
begin
	return query select who, number, at, value from kith_marks where key = n and id = of_id and who = any (whos);
end $$;

create or replace function kith_marks_count(t text, s bigint, f bytea, of_id bytea, prefix bytea) returns bigint
	language plpgsql as $$
declare n bigint := (select k from kith_row(t, s, f, false));
begin
	return (select count(*) from kith_marks where key = n and id = of_id
		and substring(who from 1 for length(prefix)) = prefix);
end $$;

create or replace function kith_marks_forget(t text, s bigint, f bytea, until bigint, most integer) returns bigint
	language plpgsql as $$
declare
	n bigint := (select k from kith_row(t, s, f, false));
	had bigint;
begin
	with gone as (delete from kith_marks m using (select o.id, o.who from kith_marks o where o.key = n and o.at < until
		order by o.at limit most) as old where m.key = n and m.id = old.id and m.who = old.who and m.at < until returning 1)
	select count(*) from gone into had;
	return had;
end $$;`

// notes are marks as the columns that kith_mark takes.
type notes struct {
	ids, froms, values [][]byte
	numbers, ats       []int64
}

// marksOf returns those of a commit.
func marksOf(w []store.Write) (n notes) {
	for i := range w {
		for _, m := range w[i].Marks {
			n.ids, n.froms = append(n.ids, []byte(w[i].ID)), append(n.froms, []byte(m.From))
			n.numbers, n.ats = append(n.numbers, int64(m.Number)), append(n.ats, m.At.UnixMilli())
			n.values = append(n.values, m.Value)
		}
	}
	return n
}

// Marks implements store.Store.
func (s *Store) Marks(ctx context.Context, at store.Shard, f route.Fence, id string, from ...string) (list []store.Mark,
	err error) {
	if err := errors.Join(store.CheckShard(at, f), store.CheckFroms(id, from...)); err != nil {
		return nil, err
	}
	whos := make([][]byte, len(from))
	for i, who := range from {
		whos[i] = []byte(who)
	}
	rows, err := s.pool.Query(ctx, "select * from kith_marks_of($1, $2, $3, $4, $5)", at.Type, int64(at.N), f[:],
		[]byte(id), whos)
	if err != nil {
		return nil, told(err)
	}
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m store.Mark, err error) {
		var who []byte
		var number, ms int64
		err = row.Scan(&who, &number, &ms, &m.Value)
		m.From, m.Number, m.At = string(who), uint64(number), time.UnixMilli(ms)
		return m, err
	})
	if err != nil {
		return nil, told(err)
	}
	return list, nil
}

// CountMarks implements store.Store.
func (s *Store) CountMarks(ctx context.Context, at store.Shard, f route.Fence, id, prefix string) (n int, err error) {
	if err := errors.Join(store.CheckShard(at, f), store.CheckFroms(id, prefix)); err != nil {
		return 0, err
	}
	err = s.pool.QueryRow(ctx, "select kith_marks_count($1, $2, $3, $4, $5)", at.Type, int64(at.N), f[:], []byte(id),
		[]byte(prefix)).Scan(&n)
	return n, told(err)
}

// ForgetMarks implements store.Store.
func (s *Store) ForgetMarks(ctx context.Context, at store.Shard, f route.Fence, by time.Time, most int) (n int,
	err error) {
	if err := errors.Join(store.CheckShard(at, f), store.CheckForget(most)); err != nil {
		return 0, err
	}
	err = s.pool.QueryRow(ctx, "select kith_marks_forget($1, $2, $3, $4, $5)", at.Type, int64(at.N), f[:],
		by.UnixMilli(), most).Scan(&n)
	return n, told(err)
}
