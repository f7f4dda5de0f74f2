// Package plane decides what a node does with a user's message beyond the fast path: what becomes of a refusal at the
// node that refuses and at the one that is refused, which asker waits for which answer, and what a closed gate keeps.
// Its values are stepped: both runtimes use them, driver under its locks and sim bare. None of them is safe for
// concurrent use.
package plane
