// Package house holds no code, only the tests that keep the rules of the house: which room may import which, what pure
// rooms may not touch, what has to be documented, how long things may be, and which modules an embedder pays for.
// CONTRIBUTING.md says the same in words.
package house
