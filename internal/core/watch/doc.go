// Package watch is what one node knows of entities that watch one another: a machine that takes the watches of its
// entities to the homes of those that they watch, and brings back what became of them; and the book of the watches of
// its own entities. The hosts of the watched ones keep their watchers (package entity). It is pure: see the five
// verbs in ARCHITECTURE.md.
package watch
