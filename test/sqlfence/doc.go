// Package sqlfence tests package kith/sqlfence against real databases: SQLite, PostgreSQL and MariaDB. It is a module
// of its own, so that users of kith do not get their drivers.
package sqlfence
