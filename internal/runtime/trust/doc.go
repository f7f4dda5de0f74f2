// Package trust keeps the credentials of a node and the authorities that it believes: its certificate, the authorities,
// the lists of those revoked, and how all of it is renewed while the node runs.
//
// Credentials go in: a TLS, from files or from memory, becomes a Store. A verified peer comes out: Accept and Dial make
// a Conn over a socket, Shake makes the handshake under a bound of bytes and turns. A peer that completes it has a
// certificate of this cluster; NameOf says of which node. Then the same Conn goes on over memory, for an event loop
// (Bare, Unseal, Seal), or stays a blocking one (Unbound). As long as it stands, Doubt judges it again by the newest
// State, and Fresh says when the transport has to replace it. A failure is a TLSError with its reason. Sockets,
// counters and what is dialled are the transport's. See docs/security.md.
package trust
