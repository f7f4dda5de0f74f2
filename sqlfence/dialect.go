// The dialects: tables and statements, as each database has them.

package sqlfence

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kith-io/kith/internal/base/enum"
)

// Dialect is the SQL of a database.
type Dialect uint8

// The dialects. What they need of the database stands in docs/sql.md.
const (
	SQLite     Dialect = 1 // 3.24 or newer, of any driver
	PostgreSQL Dialect = 2 // 9.5 or newer, and what speaks as it does, locks of rows included
	MySQL      Dialect = 3 // 5.7 or newer with InnoDB, MariaDB 10.2 or newer
)

var dialectNames = []string{SQLite: "sqlite", PostgreSQL: "postgresql", MySQL: "mysql"}

// String names the dialect.
func (d Dialect) String() string { return enum.Name(dialectNames, d, "dialect") }

// MarshalText gives the name.
func (d Dialect) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText takes a name, as String gives it; an error leaves d as it was.
func (d *Dialect) UnmarshalText(text []byte) error { return enum.Parse(d, text) }

// validate returns an error for what is no dialect.
func (d Dialect) validate() error {
	if d < SQLite || d > MySQL {
		return fmt.Errorf("%w: the dialect is %d, must be SQLite, PostgreSQL or MySQL", ErrInvalid, d)
	}
	return nil
}

// Schema returns the statements that make the two tables where they are not there yet, for those who make tables by
// migrations of their own. kith_fence has a row for each shard that was claimed, and one with the shard -1 for each
// type: the birth of the youngest cluster. kith_state has a row for each entity that is stored. Nil for what is no
// dialect.
func Schema(d Dialect) []string {
	var text, fence, state, end string
	switch d {
	case SQLite:
		text, fence, state, end = "text", "blob", "blob", " without rowid"
	case PostgreSQL:
		text, fence, state = "text", "bytea", "bytea"
	case MySQL: // text that is compared byte by byte
		text, fence, state, end = "varbinary(1024)", "binary(16)", "longblob", " engine = InnoDB"
	default:
		return nil
	}
	typ := strings.Replace(text, "1024", "255", 1)
	return []string{
		"create table if not exists kith_fence (type " + typ + " not null, shard bigint not null, fence " + fence +
			" not null, primary key (type, shard))" + end,
		"create table if not exists kith_state (type " + typ + " not null, id " + text + " not null, " +
			"version bigint not null, state " + state +
			" not null, primary key (type, id))" + strings.Replace(end, " without rowid", "", 1),
	}
}

// statements are those of a dialect.
type statements struct {
	dialect Dialect

	make, touch, share, own, plain, set, raise string // of kith_fence
	load, insert, update, remove, any          string // of kith_state
}

// words makes the statements of a dialect.
func words(d Dialect) *statements {
	const row = " from kith_fence where type = ? and shard = ?"
	s := &statements{
		dialect: d,
		make:    "insert into kith_fence (type, shard, fence) values (?, ?, ?) on conflict do nothing",
		plain:   "select fence" + row,
		share:   "select fence" + row + " for share",
		own:     "select fence" + row + " for update",
		set:     "update kith_fence set fence = ? where type = ? and shard = ?",
		raise:   "update kith_fence set fence = ? where type = ? and fence < ?",
		load: "select f.fence, s.version, s.state from kith_fence f left join kith_state s on s.type = f.type and s.id = ? " +
			"where f.type = ? and f.shard = ?",
		insert: "insert into kith_state (type, id, version, state) values (?, ?, 1, ?) on conflict do nothing",
		update: "update kith_state set version = version + 1, state = ? where type = ? and id = ? and version = ?",
		remove: "delete from kith_state where type = ? and id = ? and version = ?",
		any:    "select version from kith_state where type = ? and id = ?",
	}
	switch d {
	case SQLite: // has no locks of rows: a transaction that begins with a write has the file
		s.touch = "update kith_fence set fence = fence where type = ? and shard = ?"
		s.share, s.own = s.plain, s.plain
	case PostgreSQL:
		for _, text := range []*string{&s.make, &s.plain, &s.share, &s.own, &s.set, &s.raise, &s.load, &s.insert, &s.update,
			&s.remove, &s.any} {
			*text = numbered(*text)
		}
	case MySQL: // insert ignore would also cut what is too long: the row of a fence has nothing that could be
		s.make = "insert ignore into kith_fence (type, shard, fence) values (?, ?, ?)"
		s.share = "select fence" + row + " lock in share mode"
		s.insert = strings.TrimSuffix(s.insert, " on conflict do nothing")
	}
	return s
}

// numbered writes the placeholders as PostgreSQL has them.
func numbered(text string) string {
	parts := strings.Split(text, "?")
	for i := 1; i < len(parts); i++ {
		parts[i] = "$" + strconv.Itoa(i) + parts[i]
	}
	return strings.Join(parts, "")
}
