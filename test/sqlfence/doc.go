// Package sqlfence tests package kith/sqlfence against real databases: SQLite, PostgreSQL and MariaDB. It is a module
// of its own, so that nobody who uses kith gets their drivers.
package sqlfence
