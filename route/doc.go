// Package route holds the values that many rooms share about routing: entity, shard and type ids, the Fence, delivery
// reasons and errors, and the Codec interface. Hashes are fixed by the protocol; their vectors stand in the tests.
package route
