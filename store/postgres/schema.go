// The schema: two tables, and the functions that each call is one statement of.

package postgres

// The states of errors that the functions raise.
const (
	stateFenced   = "KI001"
	stateVersion  = "KI002"
	stateWentBack = "KI003"
)

// schema makes what is not there yet. Altering a table waits for all that use it, so that is done where a column is
// missing alone. wake says that a record has an outbox; due is in milliseconds. Both are null otherwise, and so stand
// in no index.
//
// kith_row locks the row of a shard until its transaction ends: a claim, which changes it, waits for the commits under
// way, and a commit that comes later finds the new fence. A commit that deletes raises the floor of the shard, and so
// waits for the others, and they for it. In a function each statement sees what was committed before it began, so that
// holds whichever comes first. The functions of earlier builds, kith_claim, kith_held, kith_load, kith_commit and a
// kith_write of fewer parameters, are left where they are: processes of those builds may call them.
const schema = `
create table if not exists kith_shard (
	key bigint generated always as identity primary key,
	type text not null, shard bigint not null, fence bytea not null, before bytea not null, unique (type, shard));
create table if not exists kith_entity (
	key bigint not null, id bytea not null, version bigint not null, schema integer not null, state bytea, outbox bytea,
	due bigint, wake bigint, nonce bytea not null, primary key (key, id));
do $$ begin
	if not exists (select 1 from pg_attribute where attrelid = 'kith_shard'::regclass and attname = 'floor') then
		alter table kith_shard add column floor bigint not null default 0;
	end if;
	if not exists (select 1 from pg_attribute where attrelid = 'kith_entity'::regclass and attname = 'reminders') then
		alter table kith_entity add column reminders bytea;
		drop index if exists kith_wake;
		create index kith_unsent on kith_entity (key, wake, id) where wake is not null;
		create index kith_due on kith_entity (key, due, id) where due is not null;
	end if;
end $$;

create or replace function kith_own(t text, s bigint, f bytea, out last bytea, out low bigint) language plpgsql as $$
declare is_now bytea;
begin
	insert into kith_shard (type, shard, fence, before) values (t, s, f, decode(repeat('00', 16), 'hex'))
		on conflict (type, shard) do nothing;
	select fence, before, floor into is_now, last, low from kith_shard where type = t and shard = s for update;
	if is_now > f then
		raise exception 'fenced' using errcode = 'KI001';
	elsif is_now < f then
		last := is_now;
		update kith_shard set fence = f, before = is_now where type = t and shard = s;
	end if;
end $$;

create or replace function kith_row(t text, s bigint, f bytea, change boolean, out k bigint, out low bigint)
	language plpgsql as $$
declare is_now bytea;
begin
	if change then
		select key, fence, floor into k, is_now, low from kith_shard where type = t and shard = s for no key update;
	else
		select key, fence, floor into k, is_now, low from kith_shard where type = t and shard = s for share;
	end if;
	if k is null or is_now < f then
		raise exception 'the shard is not claimed under this fence' using errcode = 'KI003';
	elsif is_now > f then
		raise exception 'fenced' using errcode = 'KI001';
	end if;
end $$;

create or replace function kith_read(t text, s bigint, f bytea, ids bytea[])
	returns table (r_id bytea, r_version bigint, r_schema integer, r_state bytea, r_outbox bytea, r_reminders bytea,
		r_due bigint, r_nonce bytea) language plpgsql as $$
declare n bigint := (select k from kith_row(t, s, f, false));
begin
	return query select id, version, schema, state, outbox, reminders, due, nonce from kith_entity
		where key = n and id = any (ids);
end $$;

create or replace function kith_write(t text, s bigint, f bytea, ids bytea[], versions bigint[], fresh boolean[],
	schemas integer[], states bytea[], outboxes bytea[], alarms bytea[], dues bigint[], wakes bigint[], nonces bytea[],
	gone bytea[], were bigint[], raised bigint) returns void language plpgsql as $$
declare
	k bigint;
	low bigint;
	n integer;
begin
	select r.k, r.low into k, low from kith_row(t, s, f, raised > 0) r;
	with w as (select * from unnest(ids, versions, fresh, schemas, states, outboxes, alarms, dues, wakes, nonces)
		as w (id, version, fresh, schema, state, outbox, reminders, due, wake, nonce)),
	made as (
		insert into kith_entity as e (key, id, version, schema, state, outbox, reminders, due, wake, nonce)
			select k, id, version, schema, state, outbox, reminders, due, wake, nonce from w
			where w.fresh and (version > low or exists (select 1 from kith_entity o where o.key = k and o.id = w.id))
		on conflict (key, id) do update set nonce = excluded.nonce
			where e.version = excluded.version and e.nonce = excluded.nonce
		returning 1),
	changed as (
		update kith_entity e set version = w.version, schema = w.schema, state = w.state, outbox = w.outbox,
			reminders = w.reminders, due = w.due, wake = w.wake, nonce = w.nonce
		from w where e.key = k and e.id = w.id and not w.fresh
			and (e.version = w.version - 1 or e.version = w.version and e.nonce = w.nonce)
		returning 1)
	select (select count(*) from made) + (select count(*) from changed) into n;
	if n <> coalesce(array_length(ids, 1), 0) then
		raise exception 'a record is of another version' using errcode = 'KI002';
	end if;
	if raised > 0 then
		delete from kith_entity e using unnest(gone, were) as w (id, version)
			where e.key = k and e.id = w.id and e.version = w.version;
		if exists (select 1 from kith_entity where key = k and id = any (gone)) then
			raise exception 'a record is of another version' using errcode = 'KI002';
		end if;
		update kith_shard set floor = raised where key = k and floor < raised;
	end if;
end $$;` + marksSchema
