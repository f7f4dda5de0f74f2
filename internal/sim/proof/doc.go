// Package proof decides every state of the directed links of a few nodes by the resolver, from every node's own view:
// no state may leave two survivors, and none may leave no survivor where the strategy promises one.
//
// docs/contributing/resolver.md says how views arise and what obliges a strategy. `make resolver-proof` runs it.
package proof
