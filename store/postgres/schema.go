// The schema: two tables, and the functions that each call is one statement of.

package postgres

// The states of errors that the functions raise.
const (
	stateFenced   = "KI001"
	stateVersion  = "KI002"
	stateWentBack = "KI003"
)

// schema makes what is not there yet. wake is when a record is due, -infinity for at once because of its outbox, null
// for never. kith_held locks the row of a shard until its transaction ends: a claim, which changes it, waits for the
// commits under way, and a commit that comes later finds the new fence. In a function each statement sees what was
// committed before it began, so that holds whoever comes first.
const schema = `
create table if not exists kith_shard (
	key bigint generated always as identity primary key,
	type text not null, shard bigint not null, fence bytea not null, before bytea not null, unique (type, shard));
create table if not exists kith_entity (
	key bigint not null, id bytea not null, version bigint not null, schema integer not null, state bytea, outbox bytea,
	due bigint, wake bigint, nonce bytea not null, primary key (key, id));
create index if not exists kith_wake on kith_entity (key, wake) where wake is not null;

create or replace function kith_claim(t text, s bigint, f bytea, out last bytea) language plpgsql as $$
declare is_now bytea;
begin
	insert into kith_shard (type, shard, fence, before) values (t, s, f, decode(repeat('00', 16), 'hex'))
		on conflict (type, shard) do nothing;
	select fence, before into is_now, last from kith_shard where type = t and shard = s for update;
	if is_now > f then
		raise exception 'fenced' using errcode = 'KI001';
	elsif is_now < f then
		last := is_now;
		update kith_shard set fence = f, before = is_now where type = t and shard = s;
	end if;
end $$;

create or replace function kith_held(t text, s bigint, f bytea, out k bigint) language plpgsql as $$
declare is_now bytea;
begin
	select key, fence into k, is_now from kith_shard where type = t and shard = s for share;
	if k is null or is_now < f then
		raise exception 'the shard is not claimed under this fence' using errcode = 'KI003';
	elsif is_now > f then
		raise exception 'fenced' using errcode = 'KI001';
	end if;
end $$;

create or replace function kith_load(t text, s bigint, f bytea, ids bytea[])
	returns table (r_id bytea, r_version bigint, r_schema integer, r_state bytea, r_outbox bytea, r_due bigint,
		r_nonce bytea) language plpgsql as $$
declare k bigint := kith_held(t, s, f);
begin
	return query select id, version, schema, state, outbox, due, nonce from kith_entity where key = k and id = any (ids);
end $$;

create or replace function kith_commit(t text, s bigint, f bytea, ids bytea[], versions bigint[], schemas integer[],
	states bytea[], outboxes bytea[], dues bigint[], wakes bigint[], nonces bytea[]) returns void language plpgsql as $$
declare
	k bigint := kith_held(t, s, f);
	n integer;
begin
	with w as (select * from unnest(ids, versions, schemas, states, outboxes, dues, wakes, nonces)
		as w (id, version, schema, state, outbox, due, wake, nonce)),
	made as (
		insert into kith_entity select k, id, version, schema, state, outbox, due, wake, nonce from w where version = 1
		on conflict (key, id) do update set nonce = excluded.nonce
			where kith_entity.version = excluded.version and kith_entity.nonce = excluded.nonce
		returning 1),
	changed as (
		update kith_entity e set version = w.version, schema = w.schema, state = w.state, outbox = w.outbox, due = w.due,
			wake = w.wake, nonce = w.nonce
		from w where e.key = k and e.id = w.id and w.version > 1
			and (e.version = w.version - 1 or e.version = w.version and e.nonce = w.nonce)
		returning 1)
	select (select count(*) from made) + (select count(*) from changed) into n;
	if n <> coalesce(array_length(ids, 1), 0) then
		raise exception 'a record is of another version' using errcode = 'KI002';
	end if;
end $$;

create or replace function kith_write(t text, s bigint, f bytea, ids bytea[], versions bigint[], schemas integer[],
	states bytea[], outboxes bytea[], dues bigint[], wakes bigint[], nonces bytea[], gone bytea[], were bigint[])
	returns void language plpgsql as $$
declare k bigint;
begin
	perform kith_commit(t, s, f, ids, versions, schemas, states, outboxes, dues, wakes, nonces);
	if array_length(gone, 1) > 0 then
		k := kith_held(t, s, f);
		delete from kith_entity e using unnest(gone, were) as w (id, version)
			where e.key = k and e.id = w.id and e.version = w.version;
		if exists (select 1 from kith_entity where key = k and id = any (gone)) then
			raise exception 'a record is of another version' using errcode = 'KI002';
		end if;
	end if;
end $$;`
