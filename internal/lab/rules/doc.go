// Package rules holds no code, only the tests that keep the code rules: which room may import which, what pure
// packages may not touch, what has to be documented, how long things may be, and which modules an embedder pays for.
// CONTRIBUTING.md says the same in words.
package rules
